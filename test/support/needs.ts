/** Skips tests that need something this machine lacks, with a reason that skip-reporter.ts counts. */
import { existsSync } from 'node:fs';
import path from 'node:path';

declare module 'vitest' {
  interface TaskMeta {
    /** Why the test, or every test of the suite, is skipped. */
    skipReason?: string;
  }
}

export interface SkipOptions {
  readonly skip: boolean;
  readonly meta: { readonly skipReason?: string };
}

/**
 * Options of a test or suite: `test('…', needs(missing), …)`. `missing` is null if the machine has what the test needs;
 * otherwise it says what is missing and what to do. Hooks inside a skipped suite do not run.
 */
export const needs = (missing: string | null): SkipOptions => ({
  skip: missing !== null,
  meta: missing === null ? {} : { skipReason: missing },
});

/** For `needs`: null if these programs are on the PATH, otherwise which one is not. */
export function missingProgram(...names: readonly string[]): string | null {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const missing = names.find((name) => !folders.some((folder) => existsSync(path.join(folder, name))));
  return missing === undefined ? null : `${missing} is not installed`;
}

export const NOT_LINUX = process.platform === 'linux' ? null : 'only Linux has /proc';
