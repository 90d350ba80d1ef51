/**
 * OBS-2 on real values: each situation is made on a real server, scraped before and after, and Prometheus's own tool
 * decides whether the alert fires. Time is stretched: what happened between the two scrapes goes on like that every
 * 15 seconds for most of an hour.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { definitionOf, metricNames } from '../../src/telemetry/metrics/index.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  startTestPosthorn,
  type TestPosthorn,
  usePosthorn,
} from '../support/posthorn.ts';
import { runPromtool, WITHOUT_PROMTOOL } from '../support/promtool.ts';
import { readScrape, type Scrape, type ScrapedSample } from '../support/scrape.ts';

const posthorn = usePosthorn({
  env: { POSTHORN_MEASURE_MS: '50', POSTHORN_ACCEPT_QUEUE_EVENTS: '100', POSTHORN_OUTBOX_POLL_MS: '1m' },
});
const RULES = fileURLToPath(new URL('../../ops/prometheus/alerts.yml', import.meta.url));

const scrape = async (from: Pick<TestPosthorn, 'api'> = posthorn): Promise<Scrape> =>
  readScrape((await expectStatus(from.api('GET', '/metrics', undefined, { key: null }), 200)).text);

async function untilScrape(what: string, holds: (scrape: Scrape) => boolean): Promise<Scrape> {
  let last: Scrape | undefined;
  return eventually(
    what,
    async () => {
      last = await scrape();
      return holds(last) && last;
    },
    { saw: () => last?.text },
  );
}

async function publishMany(tenant: string, type: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ tenant, type, data: n }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
}

// --- two scrapes as a story for promtool ------------------------------------------------------------------

const STEPS = 200;
const END = '50m';
/** Gauges of what piles up go on as they went; all others stay as they were at the end. */
const PILES_UP = /^posthorn_(queue_|dead_letters|relay_lag)/;

/** Of the metrics that the rules ask for. */
function story(before: Scrape, after: Scrape, rules: string): string {
  const key = ({ name, labels }: ScrapedSample) =>
    `${name}{${JSON.stringify(Object.entries(labels).sort())}}`;
  const first = new Map(before.samples.map((sample) => [key(sample), sample.value]));
  const named = after.samples.filter(({ name }) => rules.includes(name));
  const series = named.map((sample) => {
    const metric = metricNames.find((name) => name === sample.name);
    const isCount = metric === undefined || definitionOf(metric).type === 'counter';
    const from = first.get(key(sample)) ?? (isCount ? 0 : sample.value);
    const moves = isCount || PILES_UP.test(sample.name);
    return { ...sample, from: moves ? from : sample.value, by: moves ? sample.value - from : 0 };
  });
  return [...series, { name: 'up', labels: { job: 'posthorn' }, from: 1, by: 0 }]
    .map(({ name, labels, from, by }) => {
      const shown = Object.entries(labels).map(([label, value]) => `${label}=${JSON.stringify(value)}`);
      const values = `${from}${by < 0 ? '-' : '+'}${Math.abs(by)}x${STEPS}`;
      return `      - { series: '${name}{${shown.join(',')}}', values: "${values}" }`;
    })
    .join('\n');
}

/** Which of these alerts fire at the end of the story? `soften` changes the rules: thresholds that take long to reach. */
async function expectAlerts(
  [before, after]: readonly [Scrape, Scrape],
  wanted: { firing?: readonly string[]; silent?: readonly string[] },
  soften: (rules: string) => string = (rules) => rules,
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-alerts-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const rules = soften(await readFile(RULES, 'utf8'));
  await writeFile(path.join(folder, 'alerts.yml'), rules);
  const expectations = [
    ...(wanted.firing ?? []).map((selector) => ({ selector, samples: '[{ labels: "{}", value: 1 }]' })),
    ...(wanted.silent ?? []).map((selector) => ({ selector, samples: '[]' })),
  ].map(
    ({ selector, samples }) =>
      `      - { expr: 'count(ALERTS{alertstate="firing", ${selector}}) > bool 0', eval_time: ${END}, exp_samples: ${samples} }`,
  );
  const file = `rule_files: [alerts.yml]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
${story(before, after, rules)}
    promql_expr_test:
${expectations.join('\n')}
`;
  await writeFile(path.join(folder, 'test.yml'), file);
  const { ok, said } = await runPromtool(['test', 'rules', 'test.yml'], { cwd: folder });
  expect(ok, said).toBe(true);
}

const named = (name: string): string => `alertname="${name}"`;
const judged = test.skipIf(WITHOUT_PROMTOOL);
const why = WITHOUT_PROMTOOL ?? '';
const ONE_TRY = { schedule: [0] };

judged(`a real scrape is what promtool expects, and has every metric there is${why}`, async () => {
  const { text, names } = await scrape();
  const { ok, said } = await runPromtool(['check', 'metrics'], { input: text });
  expect(ok, said).toBe(true);
  expect([...names].sort()).toEqual([...metricNames].sort());
});

// First: the outbox of this server is looked at at its start, and then a minute later.
judged(`OBS-2: events in the outbox are not taken over${why}`, async () => {
  const lag = (now: Scrape) => now.value('posthorn_relay_lag_seconds', { source: 'outbox' });
  await untilScrape('nothing waits', (now) => lag(now) === 0);
  await posthorn.database.query(`select posthorn.publish('alert.outbox', '1')`);
  const before = await untilScrape('it waits', (now) => lag(now) > 0);
  const after = await untilScrape('it waits longer', (now) => lag(now) > lag(before) + 0.5);
  const outbox = `${named('PosthornRelayLag')}, source="outbox"`;
  await expectAlerts([before, after], { firing: [outbox] });

  // What a relay says of itself (test/e2e/relay.test.ts has real ones), and one that has fallen silent.
  await posthorn.database.query(
    `insert into posthorn.relay_sources (name, mode, lag_seconds, retained_bytes, reported_at)
     values ('shop', 'cdc', 2, 4096, now()), ('crm', 'poll', 2, null, now() - interval '1 minute')`,
  );
  const relays = await untilScrape('both are shown', (now) => now.text.includes('source="relay shop"'));
  expect(relays.value('posthorn_relay_retained_bytes', { source: 'relay shop' })).toBe(4096);
  await expectAlerts([relays, relays], {
    firing: [`${named('PosthornRelayLag')}, source="relay crm"`],
    silent: [`${named('PosthornRelayLag')}, source="relay shop"`],
  });
  await posthorn.database.query('truncate posthorn.outbox, posthorn.relay_sources');
  await untilScrape('nothing waits any more', (now) => now.value('posthorn_relay_lag_seconds') === 0);
});

judged(`all is well: no alert${why}`, async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  await publishMany(tenant, 'alert.good', 20);
  const before = await untilScrape(
    'delivered',
    (now) => now.value('posthorn_attempts_total', { event_type: 'alert.good' }) === 20,
  );
  await publishMany(tenant, 'alert.good', 20);
  const after = await untilScrape(
    'delivered',
    (now) =>
      now.value('posthorn_attempts_total', { event_type: 'alert.good' }) === 40 &&
      now.value('posthorn_queue_depth') === 0,
  );
  // Except for those about time: this machine may be busy with other tests.
  const silent = ['alertname!~"PosthornEventLoopLate|PosthornPoolExhausted|PosthornMeasurementsOld"'];
  await expectAlerts([before, after], { silent });
});

judged(`OBS-2: a failing endpoint, and dead letters that pile up${why}`, async () => {
  const tenant = newTenant();
  const [good, bad] = [await newReceiver(), await newReceiver()];
  bad.answer({ status: 400 });
  await createEndpoint(posthorn, { url: good.url, tenant, events: ['alert.fine'] });
  await createEndpoint(posthorn, { url: bad.url, tenant, events: ['alert.fails'], retry: ONE_TRY });
  for (const type of ['alert.fine', 'alert.fails']) await publishMany(tenant, type, 3);
  const dead = (count: number) => (now: Scrape) =>
    now.value('posthorn_dead_letters') === count &&
    now.value('posthorn_attempts_total', { event_type: 'alert.fine' }) === count;
  const before = await untilScrape('3 dead letters', dead(3));
  for (const type of ['alert.fine', 'alert.fails']) await publishMany(tenant, type, 3);
  const after = await untilScrape('6 dead letters', dead(6));
  await expectAlerts([before, after], {
    firing: [`${named('PosthornFailureRate')}, event_type="alert.fails"`, named('PosthornDeadLetters')],
    silent: [
      `${named('PosthornFailureRate')}, event_type="alert.fine"`,
      named('PosthornShardsUnowned'),
      named('PosthornDown'),
    ],
  });
});

judged(`OBS-2: a slow receiver${why}`, async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  receiver.answer({ delayMs: 300 });
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  const before = await scrape();
  await publishMany(tenant, 'alert.slow', 3);
  const after = await untilScrape(
    'answered',
    (now) => now.value('posthorn_attempts_total', { event_type: 'alert.slow' }) === 3,
  );
  // A third of a second instead of ten: nobody wants to wait for the real one here.
  const soften = (rules: string) => {
    expect(rules).toContain('[5m]))) > 10\n');
    return rules.replace('[5m]))) > 10\n', '[5m]))) > 0.2\n');
  };
  await expectAlerts([before, after], { firing: [named('PosthornSlowReceivers')] }, soften);
  await expectAlerts([before, after], { silent: [named('PosthornSlowReceivers')] });
});

judged(`OBS-2: a queue that grows and gets old${why}`, async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  receiver.hang();
  await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 1 });
  const depth = (now: Scrape) => now.value('posthorn_queue_depth', { state: 'flowing' });
  const age = (now: Scrape) =>
    now.value('posthorn_queue_oldest_age_seconds', { kind: 'fresh', state: 'flowing' });
  await publishMany(tenant, 'alert.queue', 100);
  const before = await untilScrape('99 wait', (now) => depth(now) === 99);
  await publishMany(tenant, 'alert.queue', 100);
  const after = await untilScrape(
    '199 wait, a second longer',
    (now) => depth(now) === 199 && age(now) > age(before) + 1,
  );
  receiver.release();
  await expectAlerts([before, after], { firing: [named('PosthornQueueDeep'), named('PosthornQueueOld')] });
  await untilScrape('nothing waits any more', (now) => depth(now) === 0);
});

judged(`OBS-2: circuits open, an endpoint is disabled, load is shed${why}`, async () => {
  const tenant = newTenant();
  const [failing, gone] = [await newReceiver(), await newReceiver()];
  failing.answer({ status: 500 });
  gone.answer({ status: 410 });
  const breaker = {
    consecutive: 1,
    failure_rate: 1,
    min_requests: 100,
    window_seconds: 60,
    cooldown_seconds: 300,
    max_cooldown_seconds: 300,
  };
  for (let n = 0; n < 3; n += 1)
    await createEndpoint(posthorn, { url: failing.url, tenant, events: ['alert.circuit'], breaker });
  await createEndpoint(posthorn, { url: gone.url, tenant, events: ['alert.gone'] });
  const before = await scrape();
  for (const type of ['alert.circuit', 'alert.gone']) await publishMany(tenant, type, 1);
  // A hundred may wait for their commit.
  await publishMany(tenant, 'alert.shed', 300);
  const after = await untilScrape(
    'all of it has happened',
    (now) =>
      now.value('posthorn_circuits_open') === 3 &&
      now.value('posthorn_endpoints', { state: 'disabled' }) === 1 &&
      now.value('posthorn_rejected_total', { code: 'overloaded' }) > 0,
  );
  await expectAlerts([before, after], {
    firing: ['PosthornCircuitsOpen', 'PosthornEndpointsDisabled', 'PosthornShedding'].map(named),
  });
});

judged(`OBS-2: nobody owns the shards${why}`, async () => {
  const api = await startTestPosthorn({
    database: posthorn.database,
    env: { POSTHORN_ROLE: 'api', POSTHORN_MEASURE_MS: '50' },
    inProcess: true,
  });
  onTestFinished(() => api.stop());
  const alone = await scrape(api);
  await expectAlerts([alone, alone], { firing: [named('PosthornShardsUnowned')] });
});
