/** Once for a run: builds the console if it is older than its sources, finds a browser and sees whether it starts. */
import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';
import { buildConsole } from '../../../scripts/build-console.ts';
import { type Chromium, findChromium, launchOptions } from '../../../scripts/find-chromium.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** As text: why there is none that starts here. The tests are skipped then. */
    chromium: Chromium | string;
  }
}

export default async function prepare(project: TestProject): Promise<void> {
  project.provide('chromium', await findWorking());
  await buildConsole({ ifNeeded: true });
}

const ADVICE = 'install one, or name it in POSTHORN_TEST_CHROMIUM';

async function findWorking(): Promise<Chromium | string> {
  const found = await findChromium().catch(whyNot);
  if (found === null) return `npm brings no Chromium for ${process.platform} on ${process.arch}: ${ADVICE}`;
  if (typeof found === 'string') return `the Chromium from npm cannot be unpacked (${found}): ${ADVICE}`;
  const failure = await chromium.launch(launchOptions(found)).then((browser) => browser.close(), whyNot);
  return failure === undefined
    ? found
    : `${found.executablePath} does not start here (${failure}): ${ADVICE}`;
}

const whyNot = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0]!;
