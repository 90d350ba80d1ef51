/** The browser for the console's tests and pictures: one that is there already. Nothing is ever downloaded. */
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** POSTHORN_TEST_CHROMIUM, or the first of the usual names on the PATH. Null: none. */
export function findChromium(env: Readonly<Record<string, string | undefined>> = process.env): string | null {
  const given = env.POSTHORN_TEST_CHROMIUM;
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

/** Quiet, and without a word to anybody outside. */
export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
