/** Requests that read many payloads use bounded memory, and one tenant cannot take the turns of others. */
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { estimateRequests } from '../../src/api/endpoints/estimate-requests.ts';
import { findEvents } from '../../src/api/events/find-events.ts';
import { readWhere } from '../../src/api/events/search-payloads.ts';
import { countMatches } from '../../src/api/filters/count-matches.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { resolveDebounce } from '../../src/domain/debounce.ts';
import { parseFilter } from '../../src/domain/filter-syntax.ts';
import { idPrefixes, parsePublicId } from '../../src/domain/ids.ts';
import { openDatabase, type Pool } from '../../src/postgres/database.ts';
import { FIRST_ID } from '../../src/postgres/queries/list-query.ts';
import { examinePayloads } from '../../src/postgres/queries/search-events.ts';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn();

const PAYLOAD_BYTES = 100_000;
const MAX_BYTES_PER_STATEMENT = 8_000_000;

/** Writes events with large payloads. All have the needles of `data.n:needle`; every second one matches. */
async function writeLargeEvents(tenant: string, count: number, bytes = PAYLOAD_BYTES): Promise<void> {
  await posthorn.database.query(
    `insert into posthorn.events (id, tenant, type, data, deliveries)
     select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
             || '7' || lpad(to_hex(n), 3, '0') || '8' || substr(md5($1), 1, 11) || '0000')::uuid,
            $1, 'large',
            convert_to(format('{"n":"%s","other":"needle","pad":"%s"}',
                              case when n % 2 = 0 then 'needle' else 'hay' end, repeat('x', $3)), 'UTF8'), 0
       from generate_series(1, $2::int) n`,
    [tenant, count, bytes],
  );
}

/** A pool that records how much data each statement returns. */
function recordingPool(): { pool: Pool; bytesOfStatements: number[] } {
  const connections = openDatabase({
    connectionString: posthorn.database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => connections.close());
  const bytesOfStatements: number[] = [];
  const api = connections.pool('api');
  const query = async (text: string, values: unknown[]) => {
    const result = await api.query<{ data?: Buffer | null }>(text, values);
    bytesOfStatements.push(result.rows.reduce((sum, { data }) => sum + (data?.length ?? 0), 0));
    return result;
  };
  return { pool: { query } as unknown as Pool, bytesOfStatements };
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
const ALL = { type: null, from: null, before: null, idempotencyKey: null, has: null };

describe('no statement loads more than 8 MB of payloads', () => {
  test('a search loads its candidates in pieces, and stops when the page is full', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 220);
    const { pool, bytesOfStatements } = recordingPool();
    const where = readWhere('data.n:needle');
    const found = new Set<string>();
    let before: string | null = null;
    do {
      const page = await findEvents(pool, systemClock, { ...ALL, tenant, where, before, limit: 200 });
      for (const { id } of page.rows) found.add(id);
      before = page.resumeAt;
    } while (before !== null);
    expect(found.size).toBe(110);
    expect(Math.max(...bytesOfStatements)).toBeLessThanOrEqual(MAX_BYTES_PER_STATEMENT);
    expect(sum(bytesOfStatements)).toBeGreaterThan(220 * PAYLOAD_BYTES);

    bytesOfStatements.length = 0;
    const page = await findEvents(pool, systemClock, { ...ALL, tenant, where, limit: 3 });
    expect(page.rows).toHaveLength(4);
    expect(sum(bytesOfStatements)).toBeLessThanOrEqual(MAX_BYTES_PER_STATEMENT);
  });

  test('a search for events with a delivery of some status loads its candidates in pieces', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 200);
    const endpoint = await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant, paused: true });
    await posthorn.database.query(
      `insert into posthorn.queue (id, endpoint_id, tenant, event_type)
       select id, $2, tenant, type from posthorn.events where tenant = $1`,
      [tenant, parsePublicId(idPrefixes.endpoint, endpoint.id)],
    );
    const { pool, bytesOfStatements } = recordingPool();
    const where = readWhere('data.n:needle');
    const page = await findEvents(pool, systemClock, { ...ALL, tenant, where, has: 'waiting', limit: 200 });
    expect(page.rows).toHaveLength(100);
    expect(Math.max(...bytesOfStatements)).toBeLessThanOrEqual(MAX_BYTES_PER_STATEMENT);
  });

  test('a count of matches loads pieces, and only payloads that its filter must examine', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 100);
    const { pool, bytesOfStatements } = recordingPool();
    const parsed = parseFilter({ 'data.n': 'needle' });
    if (!parsed.ok) throw new Error('The filter is invalid.');
    expect(await countMatches(pool, tenant, ['*'], null)).toEqual({ examined: 100, matching: 100 });
    expect(await countMatches(pool, tenant, ['small'], parsed.filter)).toEqual({
      examined: 100,
      matching: 0,
    });
    expect(sum(bytesOfStatements)).toBe(0);
    expect(await countMatches(pool, tenant, ['*'], parsed.filter)).toEqual({ examined: 100, matching: 50 });
    expect(Math.max(...bytesOfStatements)).toBeLessThanOrEqual(MAX_BYTES_PER_STATEMENT);
  });
});

describe('FAN-4: an estimate of requests reads a bounded part of the last hour, and says which', () => {
  const subscriptionOf = (tenant: string) =>
    ({ tenant, events: ['*'], channels: [], filter: null, payload: 'full' }) as const;
  const shaping = { batch: null, debounce: resolveDebounce({ key: 'data.n', window_ms: 60_000 }) };

  test('it stops after its number of events, with the time of the oldest one', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 120, 100);
    const { pool } = recordingPool();
    const part = await estimateRequests(pool, systemClock, subscriptionOf(tenant), shaping, 50);
    expect(part).toMatchObject({ examined: 50, events: 50, is_complete: false });
    expect(part.until.getTime() - part.since.getTime()).toBeLessThan(600_000);
    const whole = await estimateRequests(pool, systemClock, subscriptionOf(tenant), shaping);
    expect(whole).toMatchObject({ examined: 120, events: 120, requests: 2, is_complete: true });
  });

  test('it loads payloads in pieces of 8 MB, and stops when its time is over', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 100);
    const { pool, bytesOfStatements } = recordingPool();
    let nowMs = 0;
    // A second passes with every look at the clock.
    const monotonic = () => {
      nowMs += 1_000;
      return nowMs;
    };
    const clock = { ...systemClock, monotonic };
    const estimate = await estimateRequests(pool, clock, subscriptionOf(tenant), shaping);
    expect(estimate.is_complete).toBe(false);
    expect(estimate.examined).toBeLessThan(100);
    expect(Math.max(...bytesOfStatements)).toBeLessThanOrEqual(MAX_BYTES_PER_STATEMENT);

    // Events from more than an hour ago do not count.
    const later = { ...systemClock, now: () => systemClock.now() + 3_700_000 };
    expect(await estimateRequests(pool, later, subscriptionOf(tenant), shaping)).toMatchObject({
      examined: 0,
      is_complete: true,
    });
  });
});

describe('a statement examines only as many events as it can examine quickly', () => {
  test('it examines no further event after 64 MB, and the next one continues there', async () => {
    const tenant = newTenant();
    await writeLargeEvents(tenant, 240, 300_000);
    const { pool } = recordingPool();
    const { needles } = readWhere('data.n:needle')!;
    const range = { tenant, type: null, from: null, limit: 250 };
    const first = await examinePayloads(pool, { ...range, before: null }, needles);
    expect(first).toMatchObject({ examined: 214, isEnd: false });
    const second = await examinePayloads(pool, { ...range, before: first.reachedId }, needles);
    expect(second).toMatchObject({ examined: 26, isEnd: true });
    const ids = [...first.candidates, ...second.candidates].map(({ id }) => id);
    expect(new Set(ids).size).toBe(240);
  });

  test('after a slow statement the next one examines half as many events, after a quick one twice as many', async () => {
    const limits: unknown[] = [];
    let nowMs = 0;
    const durationsMs = [10, 10, 200, 200, 10];
    const query = async (_text: string, [limit]: unknown[]) => {
      limits.push(limit);
      nowMs += durationsMs[limits.length - 1]!;
      const isEnd = limits.length === durationsMs.length;
      return { rows: [{ id: null, examined: limit, reached_id: FIRST_ID, is_end: isEnd }] };
    };
    const clock = { ...systemClock, monotonic: () => nowMs };
    const where = readWhere('data.n:needle');
    await findEvents({ query } as unknown as Pool, clock, { ...ALL, tenant: 't', where, limit: 50 });
    expect(limits).toEqual([250, 500, 1000, 500, 250]);
  });
});

describe('turns of requests that read payloads', () => {
  const call = async (path: string, body?: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${posthorn.url}${path}`, {
      headers: { authorization: `Bearer ${posthorn.key}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  const searchOf = (tenant: string) => `/v1/events?tenant=${tenant}&where=data.n:needle`;
  const countOf = (tenant: string) => ({ tenant, filter: { 'data.n': 'needle' } });
  const blocked = async (): Promise<number> =>
    (
      await posthorn.database.query<{ n: number }>(
        `select count(*)::int as n from pg_locks where not granted and relation = 'posthorn.events'::regclass`,
      )
    )[0]!.n;

  /** Blocks every reader of events until the returned function is called. */
  async function blockEvents(): Promise<() => Promise<unknown>> {
    const client = new pg.Client({ connectionString: posthorn.database.url });
    await client.connect();
    await client.query('begin');
    await client.query('lock table posthorn.events in access exclusive mode');
    let released: Promise<unknown> | undefined;
    const release = () => {
      released ??= client.end();
      return released;
    };
    onTestFinished(async () => {
      await release();
    });
    return release;
  }

  test('a tenant runs one and has four waiting, others are not held up, and a client that disconnects leaves the queue', async () => {
    const [busy, other] = [newTenant(), newTenant()];
    const release = await blockEvents();
    const running = call(searchOf(busy));
    await eventually('one search is running', async () => (await blocked()) === 1);

    const requests = [
      [searchOf(busy)],
      [`${searchOf(busy)}&has=dead`],
      [`${searchOf(busy)}&idempotency_key=k`],
      ['/v1/filters/count', countOf(busy)],
      ['/v1/filters/count', countOf(busy)],
    ] as const;
    const clients = requests.map(([path, body]) => {
      const client = new AbortController();
      return { client, answer: call(path, body, client.signal) };
    });
    const refused = await Promise.race(
      clients.map(async ({ answer }, index) => ({ index, answer: await answer })),
    );
    expect(refused.answer.status).toBe(429);
    expect(refused.answer.headers.get('retry-after')).toBe('1');
    expect(await refused.answer.json()).toMatchObject({ code: 'rate_limited' });
    expect(await blocked()).toBe(1);

    const [leaving, ...waiting] = clients.filter((_, index) => index !== refused.index);
    leaving!.client.abort();
    await expect(leaving!.answer).rejects.toThrow();
    const retries: Promise<Response>[] = [];
    await eventually('a request gets the place of the one that left', async () => {
      const retry = call(searchOf(busy));
      retries.push(retry);
      return Promise.race([retry.then(() => false), setTimeout(500, true)]);
    });

    const unfiltered = call('/v1/filters/count', { tenant: busy, filter: null });
    const others = call(searchOf(other));
    await eventually(
      'the other tenant and the count without a filter run',
      async () => (await blocked()) === 3,
    );
    await release();
    const answers = await Promise.all([running, unfiltered, others, ...waiting.map(({ answer }) => answer)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect((await Promise.all(retries)).at(-1)!.status).toBe(200);
  });
});
