/** Once for a run: the console is built if it is older than its sources, and the browser is looked for. */
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../../scripts/build-console.ts';
import { findChromium } from '../../../scripts/find-chromium.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Null: there is none, and the tests are skipped. */
    chromium: string | null;
  }
}

export default async function prepare(project: TestProject): Promise<void> {
  const chromium = findChromium();
  if (chromium === null)
    process.stderr.write(
      'No Chromium was found, so the tests of the console are skipped. Install it (apt-get install chromium), or name it in POSTHORN_TEST_CHROMIUM.\n',
    );
  project.provide('chromium', chromium);
  await buildConsole({ ifNeeded: true });
}
