/**
 * Runs the alert rules of `ops/` with promtool on samples from real servers. Only time is extrapolated: the change
 * between two scrapes is repeated every 15 seconds for 50 minutes.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { definitionOf, metricNames } from '../../src/telemetry/metrics/index.ts';
import { eventually } from './eventually.ts';
import { needs } from './needs.ts';
import { expectStatus, type TestPosthorn } from './posthorn.ts';
import { PROMTOOL_MISSING, runPromtool } from './promtool.ts';
import { readScrape, type Scrape, type ScrapedSample } from './scrape.ts';

type Api = Pick<TestPosthorn, 'api'>;

/** A test that needs promtool. */
export const judged = (name: string, run: () => Promise<void>): void =>
  test(name, needs(PROMTOOL_MISSING), run);

export const scrape = async (from: Api): Promise<Scrape> =>
  readScrape((await expectStatus(from.api('GET', '/metrics', undefined, { key: null }), 200)).text);

/** Resolves with the first scrape that holds. Like Prometheus, it tries again after one that failed. */
export async function untilScrape(
  from: Api,
  what: string,
  holds: (scrape: Scrape) => boolean,
): Promise<Scrape> {
  let last = '';
  return eventually(
    what,
    async () => {
      const { status, text } = await from.api('GET', '/metrics', undefined, { key: null });
      last = text;
      if (status !== 200) return false;
      const scraped = readScrape(text);
      return holds(scraped) && scraped;
    },
    { saw: () => last },
  );
}

const RULES = fileURLToPath(new URL('../../ops/prometheus/alerts.yml', import.meta.url));
const STEPS = 200;
const END = '50m';
/** Gauges that are extrapolated. All other gauges keep their last value. */
const EXTRAPOLATED_GAUGES = /^posthorn_(queue_|dead_letters|relay_lag|measurement_age)/;

/** Null: the scrape failed. Prometheus then sets `up` to 0 and marks the series of that target as stale. */
export type Scraped = Scrape | null;

/** Returns the input series of promtool, for the metrics that the rules use. */
function inputSeries(before: Scrape, after: Scraped, rules: string): string {
  const key = ({ name, labels }: ScrapedSample) =>
    `${name}{${JSON.stringify(Object.entries(labels).sort())}}`;
  const first = new Map(before.samples.map((sample) => [key(sample), sample.value]));
  const asked = (scraped: Scrape) => scraped.samples.filter(({ name }) => rules.includes(name));
  const series =
    after === null
      ? asked(before).map((sample) => ({ ...sample, values: `${sample.value} stale` }))
      : asked(after).map((sample) => {
          const metric = metricNames.find((name) => name === sample.name);
          const isCount = metric === undefined || definitionOf(metric).type === 'counter';
          const moves = isCount || EXTRAPOLATED_GAUGES.test(sample.name);
          const from = moves ? (first.get(key(sample)) ?? (isCount ? 0 : sample.value)) : sample.value;
          const by = sample.value - from;
          return { ...sample, values: `${from}${by < 0 ? '-' : '+'}${Math.abs(by)}x${STEPS}` };
        });
  const up = { name: 'up', labels: { job: 'posthorn' }, values: `1 ${after === null ? 0 : 1}x${STEPS}` };
  return [...series, up]
    .map(({ name, labels, values }) => {
      const shown = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
      return `      - { series: '${name}{${shown.join(',')}}', values: "${values}" }`;
    })
    .join('\n');
}

/** Alerts that a machine busy with other tests may fire. */
export const ABOUT_TIME = 'PosthornEventLoopLate|PosthornPoolExhausted|PosthornMeasurementsOld';

export const named = (alert: string): string => `alertname="${alert}"`;

/** Expects that these alerts fire, or do not fire, at the end of the series. Each is a label selector. */
export async function expectAlerts(
  [before, after]: readonly [Scrape, Scraped],
  wanted: { firing?: readonly string[]; silent?: readonly string[] },
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-alerts-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const expectations = [
    ...(wanted.firing ?? []).map((selector) => ({ selector, samples: '[{ labels: "{}", value: 1 }]' })),
    ...(wanted.silent ?? []).map((selector) => ({ selector, samples: '[]' })),
  ].map(
    ({ selector, samples }) =>
      `      - { expr: 'count(ALERTS{alertstate="firing", ${selector}}) > bool 0', eval_time: ${END}, exp_samples: ${samples} }`,
  );
  const file = `rule_files: [${JSON.stringify(RULES)}]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
${inputSeries(before, after, await readFile(RULES, 'utf8'))}
    promql_expr_test:
${expectations.join('\n')}
`;
  await writeFile(path.join(folder, 'test.yml'), file);
  const { ok, output } = await runPromtool(['test', 'rules', 'test.yml'], { cwd: folder });
  expect(ok, output).toBe(true);
}
