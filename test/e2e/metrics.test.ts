/** What `/metrics` shows of what really happens (OBS-1, DLQ-4, FAN-3), to whom, and with several processes. */

import { expect, onTestFinished, test } from 'vitest';
import { catalogue, definitionOf, type MetricName } from '../../src/telemetry/metrics/index.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { readScrape, type Scrape } from '../support/scrape.ts';

const posthorn = usePosthorn({
  env: { POSTHORN_MEASURE_MS: '50', POSTHORN_METRICS_EVENT_TYPES: '20', POSTHORN_METRICS_TENANTS: '2' },
});

const scrape = async (from: Pick<TestPosthorn, 'api'> = posthorn): Promise<Scrape> =>
  readScrape((await expectStatus(from.api('GET', '/metrics', undefined, { key: null }), 200)).text);

/** Some metrics are measured periodically, so wait for the next measurement. */
async function untilScrape(
  what: string,
  holds: (scrape: Scrape) => boolean,
  from: Pick<TestPosthorn, 'api'> = posthorn,
): Promise<Scrape> {
  let last: Scrape | undefined;
  return eventually(
    what,
    async () => {
      last = await scrape(from);
      return holds(last) && last;
    },
    { saw: () => last?.text },
  );
}

const ONE_TRY = { schedule: [0] };

test('OBS-1: attempts, successes, failures by reason and type, latency and response time are counted', async () => {
  const tenant = newTenant();
  const [good, bad] = [await newReceiver(), await newReceiver()];
  bad.answer({ status: 503 });
  await createEndpoint(posthorn, { url: good.url, tenant, events: ['count.good'] });
  await createEndpoint(posthorn, { url: bad.url, tenant, events: ['count.bad'], retry: ONE_TRY });
  const before = await scrape();
  for (let n = 0; n < 3; n += 1) {
    const { id } = await publish(posthorn, { tenant, type: 'count.good', data: n });
    await untilDeliveries(posthorn, id, 'delivered');
  }
  const { id } = await publish(posthorn, { tenant, type: 'count.bad', data: 1 });
  await untilDeliveries(posthorn, id, 'dead');
  await publish(posthorn, { tenant, type: 'count.nobody', data: 1 });

  const after = await scrape();
  const moved = (name: string, labels = {}) => after.value(name, labels) - (before.value(name, labels) || 0);
  const good_ = { event_type: 'count.good' };
  expect(moved('posthorn_events_accepted_total', good_)).toBe(3);
  expect(moved('posthorn_events_unmatched_total')).toBe(1);
  expect(moved('posthorn_deliveries_created_total')).toBe(4);
  expect(moved('posthorn_attempts_total', good_)).toBe(3);
  expect(moved('posthorn_attempts_succeeded_total', good_)).toBe(3);
  expect(moved('posthorn_attempts_failed_total', { event_type: 'count.bad', reason: 'http_5xx' })).toBe(1);
  expect(moved('posthorn_delivery_latency_seconds_count')).toBe(3);
  expect(moved('posthorn_delivery_latency_seconds_sum')).toBeLessThan(30);
  expect(moved('posthorn_response_time_seconds_count')).toBe(4);
  expect(moved('posthorn_attempts_per_delivery_bucket', { le: '1' })).toBe(4);
  expect(moved('posthorn_deliveries_delivered_total')).toBe(3);
  expect(moved('posthorn_deliveries_dead_total', { reason: 'exhausted' })).toBe(1);
  expect(moved('posthorn_commit_items_sum', { stage: 'accept' })).toBe(5);
  expect(moved('posthorn_commit_items_sum', { stage: 'settle' })).toBe(4);
  expect(after.value('posthorn_shards_owned')).toBe(256);
  expect(after.value('posthorn_ownership_proven')).toBe(1);
  expect(after.value('posthorn_pool_connections', { pool: 'api', state: 'max' })).toBe(4);
});

test('FAN-3: cache hits of subscriptions, reloads and the age of the cache are measured', async () => {
  const tenant = newTenant();
  const before = await scrape();
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  for (let n = 0; n < 3; n += 1) await publish(posthorn, { tenant, type: 'cached.type', data: n });
  await receiver.waitFor(3);
  const after = await scrape();
  const moved = (name: string, labels = {}) => after.value(name, labels) - before.value(name, labels);
  expect(moved('posthorn_subscription_cache_lookups_total', { result: 'hit' })).toBeGreaterThanOrEqual(3);
  expect(moved('posthorn_subscription_cache_reloads_total')).toBeGreaterThanOrEqual(1);
  expect(after.value('posthorn_subscription_cache_unconfirmed_seconds')).toBeLessThan(10);
});

test('OBS-1: depth and age of waiting deliveries are measured: in memory, only in the database, and held', async () => {
  const tenant = newTenant();
  const [slow, paused] = [await newReceiver(), await newReceiver()];
  slow.hang();
  const flowing = { kind: 'fresh', state: 'flowing' };
  const held = { kind: 'fresh', state: 'held' };
  await createEndpoint(posthorn, { url: slow.url, tenant, events: ['wait.slow'], max_in_flight: 1 });
  const { id } = await createEndpoint(posthorn, { url: paused.url, tenant, events: ['wait.paused'] });
  await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
  await untilScrape('nothing waits', (now) => now.value('posthorn_queue_depth') === 0);
  // More than a lane holds (200), so that the rest is known to the database only.
  const events = Array.from({ length: 250 }, (_, n) => ({ tenant, type: 'wait.slow', data: n }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
  for (let n = 0; n < 3; n += 1) await publish(posthorn, { tenant, type: 'wait.paused', data: n });
  const first = await untilScrape(
    'all wait but the one on the wire',
    (now) =>
      now.value('posthorn_queue_depth', flowing) === 249 && now.value('posthorn_queue_depth', held) === 3,
  );
  expect(first.value('posthorn_in_flight')).toBe(1);
  const age = first.value('posthorn_queue_oldest_age_seconds', flowing);
  expect(age).toBeGreaterThan(0);
  await untilScrape('they get older', (now) => now.value('posthorn_queue_oldest_age_seconds', held) > age);
  slow.release();
  await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/resume`), 200);
  await untilScrape('nothing waits any more', (now) => now.value('posthorn_queue_depth') === 0);
});

test('DLQ-4: dead letters are counted in total and for the tenants with the most', async () => {
  const receiver = await newReceiver();
  receiver.answer({ status: 400 });
  const tenants = [newTenant(), newTenant(), newTenant()];
  const before = (await untilScrape('measured', (now) => now.value('posthorn_dead_letters') >= 0)).value(
    'posthorn_dead_letters',
  );
  for (const [index, tenant] of tenants.entries()) {
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    for (let n = 0; n < 4 - index; n += 1) {
      const { id } = await publish(posthorn, { tenant, type: 'dead.letter', data: n });
      await untilDeliveries(posthorn, id, 'dead');
    }
  }
  const after = await untilScrape(
    'all are counted',
    (now) => now.value('posthorn_dead_letters') === before + 9,
  );
  const of = (tenant: string) => after.value('posthorn_dead_letters_by_tenant', { tenant });
  expect(of(tenants[0]!)).toBe(4);
  expect(of(tenants[1]!)).toBe(3);
  expect(of(tenants[2]!)).toBeNaN();
  expect(of('other')).toBe(before + 2);
});

test('open circuits, paused and disabled endpoints, and refused requests are counted', async () => {
  const tenant = newTenant();
  const [failing, gone] = [await newReceiver(), await newReceiver()];
  failing.answer({ status: 500 });
  gone.answer({ status: 410 });
  await createEndpoint(posthorn, {
    url: failing.url,
    tenant,
    events: ['circuit.x'],
    retry: ONE_TRY,
    breaker: {
      consecutive: 1,
      failure_rate: 1,
      min_requests: 100,
      window_seconds: 60,
      cooldown_seconds: 300,
      max_cooldown_seconds: 300,
    },
  });
  await createEndpoint(posthorn, { url: gone.url, tenant, events: ['gone.x'] });
  const before = await scrape();
  for (const type of ['circuit.x', 'gone.x']) await publish(posthorn, { tenant, type, data: 1 });
  const batch = { events: [{ tenant, type: 'not a type', data: 1 }] };
  await expectStatus(posthorn.api('POST', '/v1/events/batch', batch), 202);
  await expectStatus(posthorn.api('GET', '/v1/endpoints', undefined, { key: null }), 401);
  const after = await untilScrape(
    'the circuit is open and the endpoint disabled',
    (now) =>
      now.value('posthorn_circuits_open') === 1 &&
      now.value('posthorn_endpoints', { state: 'disabled' }) === 1,
  );
  const moved = (name: string, labels = {}) => after.value(name, labels) - (before.value(name, labels) || 0);
  expect(moved('posthorn_circuit_changes_total', { to: 'open' })).toBe(1);
  expect(moved('posthorn_endpoints_disabled_total', { reason: 'gone' })).toBe(1);
  expect(moved('posthorn_rejected_total', { code: 'invalid' })).toBe(1);
  expect(moved('posthorn_rejected_total', { code: 'unauthorized' })).toBe(1);
});

test('OBS-1: labels match the catalogue, endpoints are not labels, and event types are limited', async () => {
  const tenant = newTenant();
  const events = Array.from({ length: 60 }, (_, n) => ({ tenant, type: `made.up-${n}`, data: n }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
  const { samples, text } = await scrape();
  const types = samples.filter(({ name }) => name === 'posthorn_events_accepted_total');
  expect(types).toHaveLength(21);
  expect(types.at(-1)!.labels).toEqual({ event_type: 'other' });
  expect(text).not.toMatch(/ep_|evt_|dlv_/);
  for (const { name, labels } of samples) {
    const metric = name in catalogue ? name : name.replace(/_(bucket|sum|count)$/, '');
    const allowed = [...(definitionOf(metric as MetricName).labels ?? []), 'le'];
    expect(allowed, name).toEqual(expect.arrayContaining(Object.keys(labels)));
  }
});

test('metrics need an admin key or a read key for all tenants, except on this machine', async () => {
  const from = (key: string | null, headers = {}) =>
    posthorn.api('GET', '/metrics', undefined, { key, headers });
  const newKey = async (key: object) =>
    (await expectStatus(posthorn.api('POST', '/v1/keys', key), 201)).body.key as string;
  const proxied = { 'x-forwarded-for': '203.0.113.9' };
  const tenant = newTenant();
  const answer = await expectStatus(from(null), 200);
  expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  await expectStatus(from(null, proxied), 401);
  await expectStatus(from(posthorn.key, proxied), 200);
  await expectStatus(from(await newKey({ scope: 'read' }), proxied), 200);
  await expectStatus(from(await newKey({ scope: 'read', tenant }), proxied), 403);
  await expectStatus(from(await newKey({ scope: 'tenant', tenant }), proxied), 403);
});

test('with serve --processes 3, one scrape shows all children, each with its number', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const port = String(await freePort());
  const node = await startTestPosthorn({
    database,
    args: ['--processes', '3', '--port', port],
    env: { POSTHORN_MEASURE_MS: '50' },
  });
  onTestFinished(() => node.stop());
  const shown = await untilScrape(
    'the shards are shared out, and the leader has measured',
    (now) =>
      now.samples.some(({ name }) => name === 'posthorn_dead_letters') &&
      now.value('posthorn_shards_owned') === 256 &&
      ['2', '3'].every((process) => now.value('posthorn_shards_owned', { process }) === 128),
    node,
  );
  expect(shown.value('posthorn_processes', { state: 'expected' })).toBe(3);
  expect(shown.value('posthorn_processes', { state: 'answered' })).toBe(3);
  // A figure of the whole database is shown by one of them only.
  expect(shown.samples.filter(({ name }) => name === 'posthorn_dead_letters')).toHaveLength(1);
});

test('with POSTHORN_METRICS=off, /metrics is 404 and everything else works', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const quiet = await startTestPosthorn({ database, env: { POSTHORN_METRICS: 'off' }, inProcess: true });
  onTestFinished(() => quiet.stop());
  await expectStatus(quiet.api('GET', '/metrics'), 404);
  const receiver = await newReceiver();
  await createEndpoint(quiet, { url: receiver.url, tenant: 'a' });
  const { id } = await publish(quiet, { tenant: 'a', type: 'a.b', data: 1 });
  await untilDeliveries(quiet, id, 'delivered');
});
