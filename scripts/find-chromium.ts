/** Finds a browser for the console tests and screenshots: an installed one, or else the one bundled by npm. */
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { unpackBundledChromium } from './bundled-chromium.ts';

/** How to launch it. */
export interface Chromium {
  readonly executablePath: string;
  /** Besides the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/**
 * Returns the browser that POSTHORN_TEST_CHROMIUM names, the first of the usual names on the PATH, or the bundled one.
 * The value `bundled` selects the bundled one. Null: none is bundled for this platform. Throws if the bundled browser
 * cannot be unpacked.
 */
export async function findChromium(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Chromium | null> {
  const installed = findInstalled(env);
  return installed === null ? unpackBundledChromium() : { executablePath: installed, env: {} };
}

function findInstalled(env: Readonly<Record<string, string | undefined>>): string | null {
  const configured = env.POSTHORN_TEST_CHROMIUM;
  if (configured === 'bundled') return null;
  const candidates =
    configured !== undefined && configured !== ''
      ? [configured]
      : (env.PATH ?? '')
          .split(path.delimiter)
          .flatMap((folder) => NAMES.map((name) => path.join(folder, name)));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Options for playwright's `launch`. The arguments turn off everything that contacts other hosts. */
export const createLaunchOptions = ({ executablePath, env }: Chromium) => ({
  executablePath,
  // Without a locale, Chromium's language is "en-US@posix". Intl rejects it, and uPlot fails to load.
  env: { ...process.env, LC_ALL: 'en_US.UTF-8', ...env },
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
