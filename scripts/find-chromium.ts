/** The browser for the console's tests and pictures: the machine's own, or else the one that npm brought. */
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
 * The one that POSTHORN_TEST_CHROMIUM names (`bundled`: that of npm), the first of the usual names on the PATH, or the
 * bundled one. Null: there is none for this platform. Throws if the bundled one cannot be unpacked.
 */
export async function findChromium(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Chromium | null> {
  const installed = findInstalled(env);
  return installed === null ? unpackBundledChromium() : { executablePath: installed, env: {} };
}

function findInstalled(env: Readonly<Record<string, string | undefined>>): string | null {
  const given = env.POSTHORN_TEST_CHROMIUM;
  if (given === 'bundled') return null;
  const candidates =
    given !== undefined && given !== ''
      ? [given]
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

/** For playwright's `launch`: quiet, and without a request to anybody outside. */
export const launchOptions = ({ executablePath, env }: Chromium) => ({
  executablePath,
  // Without a locale its language is "en-US@posix", which Intl refuses: uPlot then fails to load.
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
