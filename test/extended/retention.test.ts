/** LIF-1 over time: kills, accepts and results during a drop, and thirty days with a partition per day. */
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openTarget, readManifests } from '../../src/archive/index.ts';
import { dayOf } from '../../src/domain/archive.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { firstIdAt, newId, parsePublicId, type Uuid } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/retention.ts';
import { createPostgresArchiveRequests } from '../../src/postgres/archive-store.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { ensurePartitions } from '../../src/postgres/partitions.ts';
import { createPostgresRetentionStore } from '../../src/postgres/retention-store.ts';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import { createPostgresUpkeepStore } from '../../src/postgres/upkeep-store.ts';
import { Upkeep } from '../../src/upkeep/upkeep.ts';
import { runArchiveOnce } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  createEndpoint,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import {
  createDay,
  dropPartitions,
  keepDays,
  type OldEventOptions,
  startOfDay,
  storeOldEvent,
} from '../support/retention.ts';

const CHILD = fileURLToPath(new URL('../support/retention-child.ts', import.meta.url));
const endpointId = newId(Date.now());
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const EXPIRED = "to_at < now() - interval '30 days' and not kept";

const namesOf = async (condition: string): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      `select name from posthorn.partitions where ${condition} order by name`,
    )
  ).map(({ name }) => name);
const countOf = async (table: string): Promise<number> =>
  (await database.query<{ n: number }>(`select count(*)::int as n from posthorn.${table}`))[0]!.n;

describe('LIF-1: a killed process', () => {
  const store = (daysAgo: number, status: OldEventOptions['status']) =>
    storeOldEvent(database, { status, endpointId, atMs: startOfDay(daysAgo) + 3_600_000 });

  test.each([
    ['before_drop', 1],
    ['prepare', 1],
    ['copy', 1],
    ['copied', 1],
    ['swap', 1],
    ['drop', 2],
    ['prepare', 2],
    ['copy', 2],
    ['swap', 2],
    ['prepare', 3],
    ['copied', 3],
    ['swap', 3],
    ['drop', 4],
  ])('a process that is killed before the step %s (time %i) loses nothing', async (step, count) => {
    await createDay(database, startOfDay(50));
    const needed = [await store(50, 'waiting'), await store(50, 'dead')];
    await store(50, 'delivered');
    const child = startProcess([CHILD, database.url, step, String(count)], { env: {} });
    expect(await child.ended, child.output()).toBe('SIGKILL');
    const found = await database.query('select id from posthorn.events where id = any ($1) order by id', [
      needed.map(({ id }) => id),
    ]);
    expect(found).toHaveLength(2);
    await dropPartitions(database, { days: keepDays(30) });
    expect(await database.query('select id from posthorn.events order by id')).toEqual(
      needed.map(({ id }) => ({ id })),
    );
    expect(await countOf('attempts')).toBe(2);
    expect(await namesOf("state <> 'attached'")).toEqual([]);
    expect(await countOf('partition_changes')).toBe(0);
  });
});

test('LIF-1: processes that drop at the same time, while partitions are created, lose nothing', async () => {
  const needed: Uuid[] = [];
  for (const day of [50, 49, 48]) {
    await createDay(database, startOfDay(day));
    for (const status of ['waiting', 'dead', 'delivered'] as const) {
      const { id } = await storeOldEvent(database, { status, endpointId, atMs: startOfDay(day) + 3_600_000 });
      if (status !== 'delivered') needed.push(id);
    }
  }
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => opened.close());
  // All but one of them may fail at a step that another has done.
  const drops = Array.from({ length: 3 }, () => dropPartitions(database, { days: keepDays(30) }));
  const [created] = await Promise.allSettled([
    ensurePartitions(opened.pool('upkeep'), { days: 1, oldestMs: startOfDay(60) }),
    ...drops,
  ]);
  expect(created).toMatchObject({ status: 'fulfilled', value: expect.arrayContaining([expect.any(String)]) });
  await dropPartitions(database, { days: keepDays(30) });
  const left = await database.query<{ id: Uuid }>('select id from posthorn.events');
  expect(left.map(({ id }) => id).sort()).toEqual(needed.sort());
  expect(await countOf('attempts')).toBe(needed.length);
  expect(await namesOf("state <> 'attached'")).toEqual([]);
  expect(await namesOf(EXPIRED)).toEqual([]);
  expect(await countOf('partition_changes')).toBe(0);
});

/** Fills a day with delivered events by one statement. Quick, but without variety. */
async function fillDay(dayMs: number, count: number, dataBytes = 300): Promise<void> {
  const prefix = firstIdAt(dayMs + 3_600_000).slice(0, 13);
  const id = `('${prefix}-7000-8' || lpad(to_hex(n >> 32), 3, '0') || '-' || lpad(to_hex(n), 8, '0') || '0000')::uuid`;
  await database.query(
    `insert into posthorn.events (id, tenant, type, data, deliveries)
     select ${id}, 'acme', 'order.paid', convert_to(repeat('x', $2), 'UTF8'), 1 from generate_series(1, $1::bigint) n`,
    [count, dataBytes],
  );
  await database.query(
    `insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, finished_at, tenant, event_type)
     select ${id}, $2::uuid, 'delivered', 1, 0, to_timestamp($3::float8), 'acme', 'order.paid' from generate_series(1, $1::bigint) n`,
    [count, endpointId, dayMs / 1000 + 4000],
  );
  await database.query(
    `insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                    response_truncated, trigger, worker)
     select ${id}, ${id}, 1, to_timestamp($2::float8), 5, 200, 'delivered', 'http://127.0.0.1/', '{}', false, 'auto', 'test'
       from generate_series(1, $1::bigint) n`,
    [count, dayMs / 1000 + 4000],
  );
}

const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!;

interface Times {
  /** Until the event was accepted. */
  readonly accepted: number[];
  /** From then until its delivery was recorded. */
  readonly settled: number[];
}

/** Publishes one event after the other until `work` has ended. Returns how long each took, in milliseconds. */
async function publishDuring(posthorn: TestPosthorn, work: Promise<unknown>): Promise<Times> {
  const times: Times = { accepted: [], settled: [] };
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  // Reported by the last line. Without a handler, a rejection before that would count as unhandled.
  ended.catch(() => {});
  while (!isDone) {
    const startedAt = performance.now();
    const { id } = await publish(posthorn, { tenant: 'acme', type: 'order.paid', data: {} });
    const acceptedAt = performance.now();
    while ((await database.query(DELIVERED, [parsePublicId('evt', id)])).length === 0) await pass(1);
    times.accepted.push(acceptedAt - startedAt);
    times.settled.push(performance.now() - acceptedAt);
  }
  await ended;
  return times;
}

/** The first delivery of an event has the id of the event. */
const DELIVERED = "select from posthorn.deliveries where id = $1 and status = 'delivered'";

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('LIF-1: accepts and results wait at most 100 ms longer while a full partition is dropped beside an idle reader', async () => {
  const posthorn = await startTestPosthorn({ database });
  onTestFinished(() => posthorn.stop());
  const receiver = await newReceiver();
  await createEndpoint(posthorn, { tenant: 'acme', url: receiver.url });
  await createDay(database, startOfDay(50));
  for (const partition of await namesOf(EXPIRED))
    await database.query(`alter table posthorn.${partition} set (autovacuum_enabled = false)`);
  await fillDay(startOfDay(50), 200_000);
  const quiet = await publishDuring(posthorn, pass(5000));
  const reader = new pg.Client({ connectionString: database.url });
  await reader.connect();
  await reader.query('begin');
  for (const table of ['events', 'deliveries', 'attempts'])
    await reader.query(`select from posthorn.${table} limit 1`);
  // All tries of one round fail, because the reader keeps its locks. Then it goes, and the next round succeeds.
  const work = async () => {
    await dropPartitions(database, { days: keepDays(30), clock: systemClock });
    expect(await namesOf("state = 'preparing'")).not.toEqual([]);
    await reader.end();
    await dropPartitions(database, { days: keepDays(30), clock: systemClock });
  };
  const busy = await publishDuring(posthorn, work());
  expect(await namesOf(EXPIRED)).toEqual([]);
  for (const kind of ['accepted', 'settled'] as const) {
    const [during, before] = [busy[kind], quiet[kind]];
    const seen = `${kind}: ${during.length} times, p99 ${p99(during)} ms, max ${Math.max(...during)} ms; p99 before ${p99(before)} ms`;
    expect(p99(during), seen).toBeLessThan(p99(before) + 100);
  }
});

/** What other tables get on a day, beside events: each has its own retention. */
async function fillOthers(dayMs: number): Promise<void> {
  const ids = Array.from({ length: 200 }, () => newId(dayMs + 7_200_000));
  const at = dayMs / 1000 + 7200;
  await database.query(
    `with ids as materialized (select id from unnest($1::uuid[]) as t(id)),
          audited as (insert into posthorn.audit_log (id, tenant, actor, scope, action, object_type, request_id, address, changes)
                      select id, 'acme', 'admin', 'admin', 'endpoint.update', 'endpoint', 'req_1', '127.0.0.1', '[]' from ids),
          batched as (insert into posthorn.batches (id, endpoint_id, delivery_ids) select id, $2::uuid, array[id] from ids),
          debounced as (insert into posthorn.debounced (delivery_id, endpoint_id, by_id) select id, $2::uuid, id from ids),
          converted as (insert into posthorn.converted_payloads (event_id, version, converter, data)
                        select id, 'v1', 'ab', convert_to(repeat('x', 300), 'UTF8') from ids),
          keys as (insert into posthorn.idempotency_keys (tenant, key, event_id, fingerprint, expires_at)
                   select 'acme', id::text, id, 'x', to_timestamp($3::float8) from ids)
     insert into posthorn.event_stats (tenant, type, seconds, at, accepted, attempts, first_tries, successes, failures, retried,
                                       delivered, dead, response, delivery, tries)
     select 'acme', id::text, 3600, to_timestamp($3::float8), 1, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}' from ids`,
    [ids, endpointId, at],
  );
}

/** One round of upkeep as if it were `nowMs`. The archive runs in this process. */
async function runUpkeep(keepFor: number, nowMs: number, archiveUrl: string): Promise<void> {
  class OneRound extends Upkeep {
    run(): Promise<void> {
      return this.work();
    }
  }
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 3,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  const archive = createPostgresArchiveRequests(opened);
  const problems: unknown[] = [];
  try {
    await new OneRound({
      store: createPostgresUpkeepStore({
        database: opened,
        ensurePartitions: async () => {},
        secretBox: createSecretBox(Buffer.alloc(32)),
      }),
      retention: createPostgresRetentionStore(opened),
      clock: { ...systemClock, now: () => nowMs },
      everyMs: 1,
      days: { ...keepDays(keepFor), audit: keepFor, statistics: keepFor },
      minuteStatisticsMs: 7_200_000,
      skippedPerEndpoint: 100,
      skippedRetentionMs: DAY_MS,
      autoDisable: { deadRate: 1, minDeliveries: 1_000_000, minMs: DAY_MS, failingMs: 0 },
      beforeDrop: (partition) => archive.request(partition),
      startArchive: async () => void (await runArchiveOnce(database, { url: archiveUrl })),
      onDropped: () => {},
      onDeadLettersExpired: () => {},
      checkClock: async () => true,
      onPaused: () => {},
      onDisabled: () => {},
      onProblem: (what, error) => void problems.push(`${what}: ${error}`),
    }).run();
  } finally {
    await opened.close();
  }
  expect(problems).toEqual([]);
}

test('LIF-1: over 30 days with a partition per day the disk stays flat, no waiting or dead delivery is lost, and the archive has the rest', async () => {
  const { url } = await newArchive();
  const FIRST_DAY = 60;
  const KEEP = 7;
  const PER_DAY = 2_000;
  const needed = new Set<Uuid>();
  const sizes: number[] = [];
  const tables: number[] = [];
  for (let day = 0; day < 30; day += 1) {
    const dayMs = startOfDay(FIRST_DAY - day);
    await createDay(database, dayMs);
    await fillDay(dayMs, PER_DAY);
    await fillOthers(dayMs);
    for (const status of ['waiting', 'dead', 'dead'] as const)
      needed.add((await storeOldEvent(database, { status, endpointId, atMs: dayMs + 7_200_000 })).id);
    // People discard some old dead letters.
    const [discarded] = await database.query<{ id: Uuid }>(
      `delete from posthorn.dead_letters where id = (select id from posthorn.dead_letters order by id limit 1) returning id`,
    );
    needed.delete(discarded!.id);
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    // Deliveries go first, then attempts, then events; each waits for the archive.
    for (let round = 0; round < 4; round += 1) await runUpkeep(KEEP, dayMs + DAY_MS, url);
    await database.query('vacuum');
    const [size] = await database.query<{ bytes: number; tables: number }>(
      `select pg_database_size(current_database())::float8 as bytes,
              (select count(*)::int from posthorn.partitions where to_at <= to_timestamp($1)) as tables`,
      [dayMs / 1000 + 86_400],
    );
    sizes.push(size!.bytes);
    tables.push(size!.tables);
  }
  const full = sizes[KEEP + 2]!;
  expect(Math.max(...sizes.slice(KEEP + 2)), String(sizes)).toBeLessThan(full * 1.15);
  expect(Math.max(...tables)).toBeLessThanOrEqual(3 * (KEEP + 2));
  const kept = await database.query<{ id: Uuid }>(
    `select e.id from posthorn.events e
      where e.data is not null
        and exists (select from posthorn.attempts a where a.delivery_id = e.id)
        and (exists (select from posthorn.queue q where q.id = e.id) or exists (select from posthorn.dead_letters d where d.id = e.id))`,
  );
  expect(new Set(kept.map(({ id }) => id))).toEqual(needed);
  expect(await countOf('events')).toBeLessThan((KEEP + 1) * (PER_DAY + 100) + needed.size);

  // The archive has every day that is gone, with all that was stored on it.
  const archived = new Map(
    (await readManifests(openTarget(url))).map(({ kind, day, rows }) => [`${kind} ${day}`, rows]),
  );
  for (let day = 0; day < 30 - KEEP; day += 1) {
    const name = dayOf(startOfDay(FIRST_DAY - day));
    expect(archived.get(`events ${name}`)).toBe(PER_DAY + 3);
    expect(archived.get(`attempts ${name}`)).toBe(PER_DAY + 3);
    expect(archived.get(`deliveries ${name}`)).toBe(PER_DAY);
  }
  // Nothing else grows either.
  for (const table of [
    'audit_log',
    'batches',
    'debounced',
    'converted_payloads',
    'idempotency_keys',
    'event_stats',
  ])
    expect(await countOf(table), table).toBeLessThanOrEqual((KEEP + 1) * 200);
});

test('LIF-1: a clock that is set back by a day drops nothing, and retention continues when it is right again', async () => {
  for (const day of [38, 37]) {
    await createDay(database, startOfDay(day));
    await fillDay(startOfDay(day), 10);
  }
  const now = startOfDay(0) + 1000;
  const drop = (nowMs: number) => dropPartitions(database, { days: keepDays(36), nowMs });
  const withoutKept = (names: readonly string[]) => names.filter((name) => !name.includes('kept'));
  expect(withoutKept(await drop(now - 2 * DAY_MS))).toEqual([]);
  expect(withoutKept(await drop(now - DAY_MS))).toHaveLength(3);
  // Set back again: the next day stays.
  expect(withoutKept(await drop(now - 2 * DAY_MS))).toEqual([]);
  expect(await countOf('events')).toBe(10);
  expect(withoutKept(await drop(now))).toHaveLength(3);
  expect(await countOf('events')).toBe(0);
});
