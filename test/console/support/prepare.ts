/** Runs once before all console tests: builds the console if its sources changed, and finds a browser that starts. */
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../../scripts/build-console.ts';
import { type Chromium, createLaunchOptions, findChromium } from '../../../scripts/find-chromium.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A browser that starts here; a string says why there is none, and the tests are skipped. */
    chromium: Chromium | string;
  }
}

export default async function prepare(project: TestProject): Promise<void> {
  project.provide('chromium', await findWorkingChromium());
  await buildConsole({ ifNeeded: true });
}

const ADVICE = 'install one, or set POSTHORN_TEST_CHROMIUM to its path';

async function findWorkingChromium(): Promise<Chromium | string> {
  const found = await findChromium().catch(describeError);
  if (found === null) return `npm brings no Chromium for ${process.platform} on ${process.arch}: ${ADVICE}`;
  if (typeof found === 'string') return `the Chromium from npm cannot be unpacked (${found}): ${ADVICE}`;
  const failure = await chromium
    .launch(createLaunchOptions(found))
    .then((browser) => browser.close(), describeError);
  return failure === undefined
    ? found
    : `${found.executablePath} does not start here (${failure}): ${ADVICE}`;
}

const describeError = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0]!;
