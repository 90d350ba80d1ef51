/**
 * OBS-2 on real values: each test creates a situation on a real server and scrapes it before and after, and promtool
 * decides whether the alert fires, with the real rules and thresholds. Problems of Posthorn itself are in
 * alerts-service.test.ts.
 */
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { metricNames } from '../../src/telemetry/metrics/index.ts';
import * as alerts from '../support/alerts.ts';
import { ABOUT_TIME, expectAlerts, judged, named, scrape } from '../support/alerts.ts';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, newReceiver, newTenant, usePosthorn } from '../support/posthorn.ts';
import { runPromtool } from '../support/promtool.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { newShop, startRelay } from '../support/relay.ts';
import type { Scrape } from '../support/scrape.ts';

const posthorn = usePosthorn({
  env: { POSTHORN_MEASURE_MS: '50', POSTHORN_ACCEPT_QUEUE_EVENTS: '200', POSTHORN_OUTBOX_POLL_MS: '1m' },
});

const untilScrape = (what: string, holds: (scrape: Scrape) => boolean) =>
  alerts.untilScrape(posthorn, what, holds);

async function publishMany(tenant: string, type: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ tenant, type, data: n }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
}

const ONE_TRY = { schedule: [0] };

/** Each answer is slower than the threshold of the alert; the other tests run meanwhile. */
const slow = { type: 'alert.slow', count: 20, delayMs: 10_100 };
let slowReceiver: Receiver;
let beforeSlow: Scrape;
beforeAll(async () => {
  slowReceiver = await startReceiver();
  slowReceiver.answer({ delayMs: slow.delayMs });
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: slowReceiver.url,
    tenant,
    max_in_flight: slow.count,
    timeout_ms: 30_000,
  });
  beforeSlow = await scrape(posthorn);
  await publishMany(tenant, slow.type, slow.count);
  await slowReceiver.waitFor(slow.count);
});
afterAll(() => slowReceiver?.close());

judged('OBS-2: promtool accepts the rules and their tests', async () => {
  const cwd = fileURLToPath(new URL('../../ops/prometheus/', import.meta.url));
  for (const args of [
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { ok, output } = await runPromtool(args, { cwd });
    expect(ok, output).toBe(true);
  }
});

judged('promtool accepts a real scrape, which has every metric', async () => {
  const { text, names } = await scrape(posthorn);
  const { ok, output } = await runPromtool(['check', 'metrics'], { input: text });
  expect(ok, output).toBe(true);
  expect([...names].sort()).toEqual([...metricNames].sort());
});

// Must be the first test: this server polls its outbox at the start and then once a minute.
judged('OBS-2: events that stay in the outbox trigger the alert of the relay lag', async () => {
  const lag = (now: Scrape) => now.value('posthorn_relay_lag_seconds', { source: 'outbox' });
  await untilScrape('nothing waits', (now) => lag(now) === 0);
  await posthorn.database.query(`select posthorn.publish('alert.outbox', '1')`);
  const before = await untilScrape('it waits', (now) => lag(now) > 0);
  const after = await untilScrape('it waits longer', (now) => lag(now) > lag(before) + 0.5);
  const outbox = `${named('PosthornRelayLag')}, source="outbox"`;
  await expectAlerts([before, after], { firing: [outbox] });

  await posthorn.database.query('truncate posthorn.outbox');
  await untilScrape('nothing waits any more', (now) => lag(now) === 0);
});

judged('a healthy server triggers no alert', async () => {
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
  await expectAlerts([before, after], { silent: [`alertname!~"${ABOUT_TIME}"`] });
});

judged('OBS-2: a failing endpoint and a growing number of dead letters trigger their alerts', async () => {
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

judged('OBS-2: a growing and old queue and late retries trigger their alerts', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  onTestFinished(release);
  // The failing event is retried soon. With max_in_flight 1, a request that is not answered then blocks the retry.
  receiver.answer(async ({ json }) => {
    if (json().type === 'alert.retry') return { status: 500 };
    await released;
    return { status: 200 };
  });
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    max_in_flight: 1,
    breaker: null,
    retry: { schedule: Array.from({ length: 50 }, (_, n) => (n === 0 ? 0 : 0.2)), jitter: 'none' },
  });
  const waiting = { kind: 'fresh', state: 'flowing' };
  const depth = (now: Scrape) => now.value('posthorn_queue_depth', waiting);
  const age = (now: Scrape) => now.value('posthorn_queue_oldest_age_seconds', waiting);
  const late = (now: Scrape) => now.value('posthorn_queue_oldest_age_seconds', { ...waiting, kind: 'retry' });
  await publishMany(tenant, 'alert.retry', 1);
  await receiver.waitFor(1);
  await publishMany(tenant, 'alert.queue', 100);
  const before = await untilScrape('99 wait, and the retry', (now) => depth(now) === 99 && late(now) > 0);
  await publishMany(tenant, 'alert.queue', 100);
  const after = await untilScrape(
    '199 wait, two seconds longer',
    (now) => depth(now) === 199 && age(now) > age(before) + 2 && late(now) > late(before) + 2,
  );
  release();
  await expectAlerts([before, after], {
    firing: ['PosthornQueueDeep', 'PosthornQueueOld', 'PosthornRetriesLate'].map(named),
  });
  await untilScrape('nothing waits any more', (now) => depth(now) === 0);
});

judged('OBS-2: open circuits, a disabled endpoint and rejected load trigger their alerts', async () => {
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
  const before = await scrape(posthorn);
  for (const type of ['alert.circuit', 'alert.gone']) await publishMany(tenant, type, 1);
  // At most 100 events may wait for their commit.
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

judged('OBS-2: a blocked relay and a dead relay trigger the alert of the relay lag', async () => {
  const tenant = newTenant();
  const shop = await newShop('poll');
  const publishInShop = () =>
    shop.query("insert into posthorn_outbox (tenant, type, data) values ($1, 'alert.relay', '1')", [tenant]);
  const relay = await startRelay({ from: shop.url, to: posthorn.database.url, args: ['--name', 'shop'] });
  const source = { source: 'relay shop' };
  const lag = (now: Scrape) => now.value('posthorn_relay_lag_seconds', source);
  const alert = `${named('PosthornRelayLag')}, source="${source.source}"`;
  const stored = async () =>
    (await posthorn.database.query('select id from posthorn.events where tenant = $1', [tenant])).length;
  await publishInShop();
  await eventually('the relay has stored it', async () => (await stored()) === 1);
  const well = await untilScrape('nothing waits', (now) => lag(now) === 0);

  // As if an operator created an index without CONCURRENTLY.
  const maintenance = new pg.Client({ connectionString: posthorn.database.url });
  await maintenance.connect();
  onTestFinished(() => maintenance.end());
  await maintenance.query('begin');
  await maintenance.query('lock table posthorn.events in share mode');
  await publishInShop();
  const before = await untilScrape('it waits', (now) => lag(now) > 0);
  const after = await untilScrape('it waits longer', (now) => lag(now) > lag(before) + 0.5);
  await expectAlerts([well, well], { silent: [alert] });
  await expectAlerts([before, after], { firing: [alert] });

  // A dead relay reports nothing, so the server lets its lag grow.
  await relay.kill('SIGKILL');
  const dead = await untilScrape('it waits on', (now) => lag(now) > lag(after) + 0.5);
  const deadLonger = await untilScrape('and on', (now) => lag(now) > lag(dead) + 0.5);
  await expectAlerts([dead, deadLonger], { firing: [alert] });
});

// Must be the last test: by now most slow answers have arrived, and the answers of all other receivers are counted too.
judged('OBS-2: a slow receiver triggers its alert', async () => {
  const afterSlow = await untilScrape(
    'it has answered',
    (now) => now.value('posthorn_attempts_total', { event_type: slow.type }) === slow.count,
  );
  expect(afterSlow.value('posthorn_attempts_total')).toBeGreaterThan(10 * slow.count);
  await expectAlerts([beforeSlow, beforeSlow], { silent: [named('PosthornSlowReceivers')] });
  await expectAlerts([beforeSlow, afterSlow], { firing: [named('PosthornSlowReceivers')] });
});
