import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PERCENTILE_ERROR } from '../../src/domain/histogram.ts';
import { idPrefixes, newId, parsePublicId } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import type { Settlement } from '../../src/ports/delivery-queue.ts';
import { expireWaiting } from '../../src/postgres/queries/end-waiting.ts';
import { settleDeliveries } from '../../src/postgres/queries/settle-deliveries.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { readScrape } from '../support/scrape.ts';

/** Settings of processes that write the journal and never add it up. A later process does. */
const NEVER_ADDS = { POSTHORN_STATS_FLUSH_MS: '10m', POSTHORN_STATS_CACHE_MS: '0' };
const TYPES = 4;

let database: TestDatabase;
let posthorn: TestPosthorn;
let receiver: Receiver;

/** The two processes of `beforeAll` publish these events to one endpoint of this tenant. */
const tenant = newTenant();
const type = 'order.paid';
const [AT_ONCE, LATER, NEVER] = [10, 6, 4];
const all = AT_ONCE + LATER + NEVER;
let endpointId: string;
const eventIds: string[] = [];

// biome-ignore lint/suspicious/noExplicitAny: a test asserts on the parts it knows
async function statsOf(query: string, from = posthorn, key = from.key): Promise<any> {
  return (await expectStatus(from.api('GET', `/v1/stats?${query}`, undefined, { key }), 200)).body;
}

const outcome: AttemptOutcome = {
  startedAt: Date.now(),
  durationMs: 5,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
  statusCode: 200,
  error: null,
  url: 'https://a.test/',
  requestHeaders: {},
  responseHeaders: null,
  responseBody: null,
  responseTruncated: false,
  retryAfterMs: null,
};

const workload = {
  accepted: all,
  attempts: all + LATER,
  successes: AT_ONCE + LATER,
  failures: LATER + NEVER,
  retried: LATER,
  delivered: AT_ONCE + LATER,
  dead: NEVER,
};

beforeAll(async () => {
  database = await createTestDatabase();
  const start = (env: Record<string, string>) => startTestPosthorn({ database, env });
  const two = await Promise.all([start(NEVER_ADDS), start(NEVER_ADDS)]);
  receiver = await startAnswering();
  const endpoint = await createEndpoint(two[0]!, {
    url: receiver.url,
    tenant,
    breaker: null,
    retry: { schedule: [0, 0.05], jitter: 'none' },
  });
  endpointId = endpoint.id;
  const wanted = [
    ...Array.from({ length: AT_ONCE }, () => 'at once'),
    ...Array.from({ length: LATER }, () => 'later'),
    ...Array.from({ length: NEVER }, () => 'never'),
  ];
  for (const [index, data] of wanted.entries())
    eventIds.push((await publish(two[index % 2]!, { tenant, type, data })).id);
  await eventually('everything has ended', async () => {
    const { now } = await statsOf('window=1h', two[0]);
    return now.waiting === 0 && now.dead === NEVER;
  });
  expect(await statsOf('window=1h', two[1])).toMatchObject({ attempts: 0, accepted: 0 });
  await two[0]!.kill('SIGKILL');
  await two[1]!.kill('SIGKILL');
  posthorn = await start({
    POSTHORN_STATS_FLUSH_MS: '50ms',
    POSTHORN_STATS_CACHE_MS: '0',
    POSTHORN_STATS_TYPES_PER_TENANT: String(TYPES),
    POSTHORN_STATS_MINUTES_MS: '4h',
    POSTHORN_UPKEEP_MS: '150ms',
  });
  await journalIsAddedUp();
});
afterAll(async () => {
  await posthorn?.stop();
  await receiver?.close();
  await database?.drop();
});

async function startAnswering(): Promise<Receiver> {
  const started = await startReceiver();
  started.answer(({ json, headers, index }) => {
    const delayMs = 20 + index * 5;
    if (json().data === 'never') return { status: 400, delayMs };
    return { status: json().data === 'later' && headers['posthorn-attempt'] === '1' ? 503 : 200, delayMs };
  });
  return started;
}

const journalIsAddedUp = () =>
  eventually('the journal is added up', async () => {
    const [row] = await database.query('select count(*)::int as rows from posthorn.stats_journal');
    return row!.rows === 0;
  });

describe('statistics', () => {
  test('are exact for two processes, although both were killed before the journal was added up', async () => {
    const stats = await statsOf(`window=1h&tenant=${tenant}`);
    expect(stats).toMatchObject({
      window: '1h',
      bucket_seconds: 60,
      tenant,
      type: null,
      ...workload,
      success_rate: 0.8,
      final_success_rate: 0.8,
      attempt_success_rate: 0.6154,
      first_attempt_success_rate: AT_ONCE / all,
      dead_letter_rate: 0.2,
      retry_distribution: [AT_ONCE, LATER],
      types: [{ type, attempts: 26, delivered: 16, dead: 4, success_rate: 0.8 }],
      endpoints: [
        { endpoint_id: endpointId, tenant, attempts: 26, failures: 10, success_rate: 0.6154, dead: 4 },
      ],
    });
    expect(stats.now).toEqual({
      waiting: 0,
      waiting_for_circuit: 0,
      fresh: 0,
      retrying: 0,
      oldest_waiting_seconds: null,
      dead: NEVER,
      circuits_open: 0,
      endpoints: 1,
      endpoints_disabled: 0,
      endpoints_paused: 0,
      capped: false,
    });
  });

  test('are read from a time to a time, in points as fine as they are kept', async () => {
    const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
    for (const [hours, seconds] of [
      [1, 60],
      [3.9, 60],
      [20, 900],
      [24 * 20, 3600],
    ] as const) {
      for (const path of ['/v1/stats', `/v1/endpoints/${endpointId}/stats`]) {
        const { body } = await expectStatus(posthorn.api('GET', `${path}?since=${ago(hours)}`), 200);
        expect(body).toMatchObject({ window: null, bucket_seconds: seconds });
        expect(body.delivered).toBeGreaterThanOrEqual(workload.delivered);
        expect(Date.parse(body.from)).toBeLessThanOrEqual(Date.parse(ago(hours)));
        const earlier = await expectStatus(
          posthorn.api('GET', `${path}?since=${ago(hours + 24)}&until=${ago(3)}`),
          200,
        );
        expect(earlier.body.delivered).toBe(0);
      }
    }
    await expectStatus(posthorn.api('GET', `/v1/stats?since=${ago(1)}&until=${ago(2)}`), 422);
    await expectStatus(posthorn.api('GET', `/v1/stats?since=${ago(-1)}`), 422);
  });

  test.each([
    ['1h', 60, 60],
    ['24h', 96, 900],
    ['7d', 168, 3600],
  ])('over %s have every point of the series, and the points add up', async (window, points, seconds) => {
    for (const path of [
      `/v1/stats?window=${window}&tenant=${tenant}&type=${type}`,
      `/v1/endpoints/${endpointId}/stats?window=${window}`,
    ]) {
      const { body } = await expectStatus(posthorn.api('GET', path), 200);
      const { accepted, ...counts } = workload;
      expect(body).toMatchObject({ window, bucket_seconds: seconds, ...counts });
      const times = body.series.map(({ at }: { at: string }) => Date.parse(at));
      expect(times).toEqual(
        Array.from({ length: points }, (_, i) => Date.parse(body.from) + i * seconds * 1000),
      );
      expect(Date.parse(body.to) - times.at(-1)).toBeLessThan(seconds * 1000);
      for (const name of ['attempts', 'successes', 'failures', 'delivered', 'dead'] as const)
        expect(
          body.series.reduce((sum: number, point: Record<string, number>) => sum + point[name]!, 0),
        ).toBe(workload[name]);
      expect(body.series[0]).toMatchObject({ attempts: 0, success_rate: null, delivery_p99_ms: null });
    }
  });

  test('percentiles are within 9.1 % of what the attempt log says', async () => {
    const response: number[] = [];
    const delivery: number[] = [];
    for (const id of eventIds) {
      const attempts = (await expectStatus(posthorn.api('GET', `/v1/events/${id}/attempts`), 200)).body.data;
      const event = (await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200)).body;
      for (const { duration_ms, outcome, started_at } of attempts) {
        response.push(duration_ms);
        if (outcome === 'delivered')
          delivery.push(Date.parse(started_at) + duration_ms - Date.parse(event.created_at));
      }
    }
    const stats = await statsOf(`window=24h&tenant=${tenant}`);
    for (const [shown, measured] of [
      [stats.response_ms, response],
      [stats.delivery_ms, delivery],
    ]) {
      const sorted = measured.toSorted((a: number, b: number) => a - b);
      for (const p of [50, 95, 99]) {
        const exact = sorted[Math.ceil((sorted.length * p) / 100) - 1];
        // The log has whole milliseconds.
        expect(Math.abs(shown[`p${p}`] - exact)).toBeLessThanOrEqual((exact + 2) * PERCENTILE_ERROR + 2);
      }
    }
  });

  test('a tenant sees its own statistics; an admin sees all tenants or one', async () => {
    const other = newTenant();
    const { url } = await newReceiver();
    await createEndpoint(posthorn, { url, tenant: other });
    await publish(posthorn, { tenant: other, type: 'other.thing', data: 1 });
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: other });
    const own = await eventually('its delivery is counted', async () => {
      const stats = await statsOf('window=1h', posthorn, body.key);
      return stats.delivered === 1 && stats;
    });
    expect(own).toMatchObject({ tenant: other, accepted: 1, attempts: 1, dead: 0, endpoints: [] });
    expect(own.now).toMatchObject({ dead: 0, endpoints: 1 });
    expect(own.types.map((found: { type: string }) => found.type)).toEqual(['other.thing']);
    await expectStatus(posthorn.api('GET', `/v1/stats?tenant=${tenant}`, undefined, { key: body.key }), 403);
    await expectStatus(
      posthorn.api('GET', `/v1/endpoints/${endpointId}/stats`, undefined, { key: body.key }),
      404,
    );
    expect(await statsOf(`type=${type}`, posthorn, body.key)).toMatchObject({ accepted: 0, attempts: 0 });
    expect(await statsOf('')).toMatchObject({
      tenant: null,
      accepted: all + 1,
      attempts: workload.attempts + 1,
    });
    expect(await statsOf(`type=${type}`)).toMatchObject({ type, ...workload });
    await expectStatus(posthorn.api('GET', '/v1/stats?window=1y'), 422);
  });

  test('types beyond the limit are counted together', async () => {
    const many = newTenant();
    for (let i = 0; i < TYPES + 3; i += 1)
      await publish(posthorn, { tenant: many, type: `kind.${i}`, data: 1 });
    const stats = await eventually('all are counted', async () => {
      const found = await statsOf(`window=1h&tenant=${many}`);
      // The query reads the types before the sum, so they may be slightly older.
      return found.accepted === TYPES + 3 && found.types.length > TYPES && found;
    });
    expect(stats.types).toHaveLength(TYPES + 1);
    expect(await statsOf(`window=1h&tenant=${many}&type=other`)).toMatchObject({ accepted: 3 });
  });

  test('HLT-3: waiting deliveries show their age, and those that expired without an attempt count as dead', async () => {
    const slow = newTenant();
    const { url } = await newReceiver();
    const paused = { url, tenant: slow, paused: true, retry: { schedule: [0], max_age_seconds: 1 } };
    const [one, other] = [await createEndpoint(posthorn, paused), await createEndpoint(posthorn, paused)];
    const ofEndpoint = async (id: string) =>
      (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}/stats?window=1h`), 200)).body;
    await publish(posthorn, { tenant: slow, type: 'too.old', data: 1 });
    await eventually('it is too old', async () => {
      const { now } = await ofEndpoint(one.id);
      expect(now).toMatchObject({ waiting: 1, dead: 0, circuit: 'closed' });
      return now.oldest_waiting_seconds >= 2;
    });
    const waiting = await statsOf(`tenant=${slow}`);
    expect(waiting.now).toMatchObject({ waiting: 2, fresh: 2, endpoints: 2, endpoints_paused: 2 });
    // The worker expires one delivery when its turn comes. A sweep would expire the other after a minute: do it now.
    await posthorn.api('POST', `/v1/endpoints/${one.id}/resume`);
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const id = parsePublicId(idPrefixes.endpoint, other.id)!;
    expect(await expireWaiting(pool, id, Date.now(), [], false)).toBe(1);
    await pool.end();
    for (const endpoint of [one, other]) {
      const ended = await eventually('its death is counted', async () => {
        const found = await ofEndpoint(endpoint.id);
        return found.dead === 1 && found;
      });
      expect(ended).toMatchObject({ attempts: 0, dead_letter_rate: 1, success_rate: null });
    }
    const ended = await statsOf(`tenant=${slow}&type=too.old`);
    expect(ended).toMatchObject({ accepted: 1, dead: 2, attempts: 0, success_rate: 0 });
  });

  test('a result that is settled twice, or by two workers, is counted once', async () => {
    const twice = newTenant();
    const { url } = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url, tenant: twice, paused: true });
    const endpointId = parsePublicId(idPrefixes.endpoint, endpoint.id)!;
    const settlementOf = async (): Promise<Settlement> => {
      const event = await publish(posthorn, { tenant: twice, type: 'a.b', data: 1 });
      const [delivery] = await deliveriesOf(posthorn, event.id);
      const deliveryId = parsePublicId(idPrefixes.delivery, delivery!.id)!;
      const agesFrom = Date.parse(event.created_at);
      const attempt = {
        id: newId(Date.now()),
        outcome,
        trigger: 'auto',
        eventType: 'a.b',
        tries: 1,
      } as const;
      const verdict = { kind: 'delivered' } as const;
      return {
        deliveryId,
        endpointId,
        tenant: twice,
        attemptsBefore: 0,
        verdict,
        blocksLane: false,
        fifo: false,
        agesFrom,
        attempt,
      };
    };
    const [one, other] = [await settlementOf(), await settlementOf()];
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const settled = async (...batch: Settlement[]) =>
      (await settleDeliveries(pool, batch, [], { id: endpointId, name: 'test' })).size;
    expect([await settled(one), await settled(one, other), await settled(one, other)]).toEqual([1, 1, 0]);
    await pool.end();
    await journalIsAddedUp();
    const stats = await statsOf(`window=1h&tenant=${twice}`);
    expect(stats).toMatchObject({ accepted: 2, attempts: 2, delivered: 2, retry_distribution: [2] });
  });

  test('a repeated event is not counted again', async () => {
    const keyed = newTenant();
    const event = (key: string) => ({ tenant: keyed, type: 'a.b', data: 1, idempotency_key: key });
    await publish(posthorn, event('one'));
    await publish(posthorn, event('one'));
    const events = [event('one'), event('two'), event('three')];
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    await journalIsAddedUp();
    expect(await statsOf(`window=1h&tenant=${keyed}`)).toMatchObject({ accepted: 3, attempts: 0 });
    // A test event counts too.
    const { url } = await newReceiver();
    const { id } = await createEndpoint(posthorn, { url, tenant: keyed });
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/test`), 202);
    await eventually('the test event is counted', async () => {
      const { accepted, delivered } = await statsOf(`window=1h&tenant=${keyed}`);
      return accepted === 4 && delivered === 1;
    });
  });

  test('a journal row that cannot be read is set aside and reported, and the others are counted', async () => {
    const beside = newTenant();
    const problems = async () =>
      readScrape((await posthorn.api('GET', '/metrics')).text).value('posthorn_internal_problems_total');
    const before = await problems();
    const rows = ['{"accepted":[["acme"', '{"accepted":[["acme","a.b"]]}'];
    await database.query('insert into posthorn.stats_journal (counts) select unnest($1::text[])', [rows]);
    await publish(posthorn, { tenant: beside, type: 'a.b', data: 1 });
    await eventually('the event is counted', async () => (await statsOf(`tenant=${beside}`)).accepted === 1);
    const aside = await eventually('both are set aside', async () => {
      const found = await database.query('select counts, problem from posthorn.stats_unreadable order by 1');
      return found.length === 2 && found;
    });
    expect(aside).toEqual(rows.map((counts) => ({ counts, problem: expect.stringMatching(/./) })));
    expect(await problems()).toBeGreaterThan(before);
    await journalIsAddedUp();
  });

  test('a week with billions of deliveries can be shown', async () => {
    const busy = newTenant();
    const inAnHour = 2_000_000_000;
    await database.query(
      `insert into posthorn.event_stats
       select $1, type, 3600, date_trunc('hour', now()) - make_interval(hours => ago), $2, $2, $2, $2, 0, 0, $2, 0, '{}', '{}', '{}'
         from unnest(array['', 'a.b']) as type, generate_series(1, 2) as ago`,
      [busy, inAnHour],
    );
    const { attempts, types } = await statsOf(`window=7d&tenant=${busy}`);
    expect([attempts, types[0].attempts]).toEqual([2 * inAnHour, 2 * inAnHour]);
  });

  test('statistics older than every window are deleted, minutes long before hours', async () => {
    await database.query(
      `insert into posthorn.event_stats
       select 'old', '', seconds, now() - make_interval(hours => hours), 1, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}'
         from (values (60, 1), (60, 3), (60, 5), (900, 3), (900, 30), (3600, 30), (3600, 401 * 24)) as t(seconds, hours)`,
    );
    // Minutes for as long as the setting says.
    await eventually('four of seven are left', async () => {
      const rows = await database.query(
        `select seconds, round(extract(epoch from now() - at) / 3600)::int as hours
           from posthorn.event_stats where tenant = 'old' order by seconds, at desc`,
      );
      return JSON.stringify(rows.map(Object.values)) === '[[60,1],[60,3],[900,3],[3600,30]]';
    });
  });
});
