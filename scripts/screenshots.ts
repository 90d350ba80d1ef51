/**
 * `npm run screenshots`: writes docs/images/*.png. Starts Posthorn with an embedded PostgreSQL, delivers real events for 20
 * minutes (`SCREENSHOT_SECONDS`), so that the charts have lines, and takes the pictures. Needs Chromium (see
 * find-chromium.ts).
 */
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { startApp } from '../src/app.ts';
import { ensureKeys, loadConfig } from '../src/config/index.ts';
import { startEmbeddedPostgres } from '../src/postgres/embedded/index.ts';
import { createLog } from '../src/telemetry/log.ts';
import { buildConsole } from './build-console.ts';
import { createLaunchOptions, findChromium } from './find-chromium.ts';
import { openDirectory } from './open-directory.ts';
import { startTraffic, type Traffic } from './screenshot-traffic.ts';

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));
const TRAFFIC_SECONDS = Number(process.env.SCREENSHOT_SECONDS ?? 1200);
const PROGRESS_SECONDS = 60;
/** Starting, the pictures themselves, and stopping. */
const MAX_OVERHEAD_SECONDS = 300;

const found = await findChromium();
if (found === null)
  throw new Error('Chromium was not found. Install it, or set POSTHORN_TEST_CHROMIUM to its path.');
await buildConsole({ ifNeeded: true });
await mkdir(IMAGES, { recursive: true });

const watchdog = setTimeout(
  () => {
    console.error(`The pictures took more than ${MAX_OVERHEAD_SECONDS} s besides the traffic: giving up.`);
    process.exit(1);
  },
  (TRAFFIC_SECONDS + MAX_OVERHEAD_SECONDS) * 1000,
);

// Whatever fails, everything that was started before is stopped, in reverse order.
const started = new AsyncDisposableStack();
const directory = await openDirectory('posthorn-screenshots-');
started.defer(() => rm(directory, { recursive: true, force: true }));
const loaded = loadConfig({
  mode: 'dev',
  env: { PORT: '0', POSTHORN_DATA_DIR: directory, POSTHORN_LOG_LEVEL: 'error', POSTHORN_STATS_CACHE_MS: '0' },
});
const config = await ensureKeys(loaded, { notice: () => {} });
let url = '';
let browser: Browser;
let traffic: Traffic;
try {
  const database = await startEmbeddedPostgres({ dataDir: path.join(directory, 'postgres') });
  started.defer(() => database.stop());
  const app = await startApp({
    config: { ...config, databaseUrl: database.connectionString },
    log: createLog(loaded),
  });
  started.defer(() => app.stop());
  url = app.url;
  browser = await chromium.launch(createLaunchOptions(found));
  started.defer(() => browser.close());
  traffic = await startTraffic(url, config.adminKey);
  started.defer(() => traffic.stop());
  await waitForTraffic();
  await takeScreenshots();
} finally {
  await started.disposeAsync();
}
clearTimeout(watchdog);
// An open handle of the server or of the browser must not keep the process alive.
process.exit(0);

async function takeScreenshots(): Promise<void> {
  const light = await openConsole('light');
  await takeScreenshot(light, '/', 'overview', 'Failing endpoints');
  await takeScreenshot(
    light,
    `/events/${await traffic.findDeadEvent()}`,
    'event',
    'every attempt failed',
    async () => {
      await light.getByRole('button', { name: /^#4/ }).first().click();
      await light.getByText('webhook-signature').first().waitFor();
    },
  );
  await takeScreenshot(light, '/dead-letters', 'dead-letters', 'Newest');
  const dark = await openConsole('dark');
  await takeScreenshot(dark, `/endpoints/${traffic.flakyEndpoint}`, 'endpoint-dark', 'Recent deliveries');
  await takeScreenshot(dark, '/live', 'live-dark', 'order.created', () => sleep(2500));
}

/** Tells the user every minute that it still runs. */
async function waitForTraffic(): Promise<void> {
  for (let waited = 0; waited < TRAFFIC_SECONDS; waited += PROGRESS_SECONDS) {
    console.log(`delivering events: ${waited} of ${TRAFFIC_SECONDS} s`);
    await Promise.race([sleep(Math.min(PROGRESS_SECONDS, TRAFFIC_SECONDS - waited) * 1000), traffic.failure]);
  }
}

async function openConsole(colorScheme: 'light' | 'dark'): Promise<Page> {
  const context = await browser.newContext({
    colorScheme,
    viewport: { width: 1320, height: 860 },
    locale: 'en-US',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(`${url}/console`);
  await page.getByLabel('API key').fill(config.adminKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  return page;
}

async function takeScreenshot(
  page: Page,
  route: string,
  name: string,
  expectedText: string,
  prepare: () => Promise<unknown> = () => sleep(1500),
): Promise<void> {
  await page.goto(`${url}/console${route}`);
  await page.getByText(expectedText).first().waitFor();
  await prepare();
  await page.screenshot({ path: path.join(IMAGES, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}
