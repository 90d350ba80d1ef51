/** Finds an installed browser for the console tests and screenshots. Downloads nothing. */
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Returns POSTHORN_TEST_CHROMIUM, or the first of the usual names on the PATH; null if none is executable. */
export function findChromium(env: Readonly<Record<string, string | undefined>> = process.env): string | null {
  const configured = env.POSTHORN_TEST_CHROMIUM;
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

/** Turns off everything that contacts other hosts. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
