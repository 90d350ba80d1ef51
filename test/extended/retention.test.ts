/** LIF-1 over time: kills, accepts during a drop, and thirty days with a partition per day. */
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/domain/clock.ts';
import { firstIdAt, newId, type Uuid } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/retention.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { publish, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';
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

/** Publishes one event after the other until `work` has ended. Returns how long each took. */
async function acceptDuring(posthorn: TestPosthorn, work: Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const startedAt = performance.now();
    await publish(posthorn, { tenant: 'acme', type: 'order.paid', data: { n: times.length } });
    times.push(performance.now() - startedAt);
  }
  await ended;
  return times;
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('LIF-1: accepts wait at most 100 ms longer while a full partition is dropped beside an idle reader', async () => {
  const posthorn = await startTestPosthorn({ database });
  onTestFinished(() => posthorn.stop());
  await createDay(database, startOfDay(50));
  await fillDay(startOfDay(50), 200_000);
  const quiet = await acceptDuring(posthorn, pass(5000));
  const reader = new pg.Client({ connectionString: database.url });
  await reader.connect();
  await reader.query('begin; select from posthorn.events limit 1; select from posthorn.deliveries limit 1');
  // All tries of one round fail, because the reader keeps its locks. Then it goes, and the next round succeeds.
  const work = async () => {
    await dropPartitions(database, { days: keepDays(30), clock: systemClock });
    expect(await namesOf("state = 'preparing'")).not.toEqual([]);
    await reader.end();
    await dropPartitions(database, { days: keepDays(30), clock: systemClock });
  };
  const busy = await acceptDuring(posthorn, work());
  expect(await namesOf("to_at < now() - interval '30 days' and not kept")).toEqual([]);
  const seen = `${busy.length} accepts, p99 ${p99(busy)} ms, max ${Math.max(...busy)} ms; p99 before ${p99(quiet)} ms`;
  expect(p99(busy), seen).toBeLessThan(p99(quiet) + 100);
});

test('LIF-1: over 30 days with a partition per day the disk stays flat, and no waiting or dead delivery is lost', async () => {
  const FIRST_DAY = 60;
  const KEEP = 7;
  const needed = new Set<Uuid>();
  const sizes: number[] = [];
  const tables: number[] = [];
  for (let day = 0; day < 30; day += 1) {
    const dayMs = startOfDay(FIRST_DAY - day);
    await createDay(database, dayMs);
    await fillDay(dayMs, 2_000);
    for (const status of ['waiting', 'dead', 'dead'] as const)
      needed.add((await storeOldEvent(database, { status, endpointId, atMs: dayMs + 7_200_000 })).id);
    // People discard some old dead letters.
    const [discarded] = await database.query<{ id: Uuid }>(
      `delete from posthorn.dead_letters where id = (select id from posthorn.dead_letters order by id limit 1) returning id`,
    );
    needed.delete(discarded!.id);
    await database.query("update posthorn.partitions set cleaned_at = now() - interval '2 hours'");
    await dropPartitions(database, { days: keepDays(KEEP), nowMs: dayMs + DAY_MS });
    const [size] = await database.query<{ bytes: number; tables: number }>(
      `select sum(pg_total_relation_size(c.oid))::float8 as bytes, count(*)::int as tables
         from pg_class c join posthorn.partitions p on p.name = c.relname and p.to_at <= to_timestamp($1)`,
      [dayMs / 1000 + 86_400],
    );
    sizes.push(size!.bytes);
    tables.push(size!.tables);
  }
  const full = sizes[KEEP + 2]!;
  expect(Math.max(...sizes.slice(KEEP + 2))).toBeLessThan(full * 1.15);
  expect(Math.max(...tables)).toBeLessThanOrEqual(3 * (KEEP + 2));
  const kept = await database.query<{ id: Uuid }>(
    `select e.id from posthorn.events e
      where e.data is not null
        and exists (select from posthorn.attempts a where a.delivery_id = e.id)
        and (exists (select from posthorn.queue q where q.id = e.id) or exists (select from posthorn.dead_letters d where d.id = e.id))`,
  );
  expect(new Set(kept.map(({ id }) => id))).toEqual(needed);
  expect(await countOf('events')).toBeLessThan((KEEP + 1) * 2_100 + needed.size);
});
