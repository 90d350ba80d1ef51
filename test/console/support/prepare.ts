/** Runs once before all console tests: builds the console if its sources changed, and finds the browser. */
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../../scripts/build-console.ts';
import { findChromium } from '../../../scripts/find-chromium.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The path of the browser; null: not installed, the tests are skipped. */
    chromium: string | null;
  }
}

export default async function prepare(project: TestProject): Promise<void> {
  const chromium = findChromium();
  if (chromium === null)
    process.stderr.write(
      'Chromium was not found: the console tests are skipped. Install it (apt-get install chromium), or set POSTHORN_TEST_CHROMIUM to its path.\n',
    );
  project.provide('chromium', chromium);
  await buildConsole({ ifNeeded: true });
}
