/** Fan-outs that once stalled everybody: the server stays responsive, bounded in memory, and loses nothing when killed. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { createManyEndpoints } from '../support/many-endpoints.ts';
import { newReceiver, publish, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';

const NOWHERE = 'http://127.0.0.1:9';
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function start(database: TestDatabase, env: Record<string, string> = {}): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({ database, env });
  onTestFinished(() => posthorn.stop());
  return posthorn;
}

/** The most memory that the process had so far, in MiB. */
async function peakMemory({ pid }: TestPosthorn): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024;
}

/** Publishes for another tenant until `isOver`. Returns how long each answer took. */
async function publishMeanwhile(posthorn: TestPosthorn, isOver: () => boolean): Promise<number[]> {
  const latencies: number[] = [];
  while (!isOver()) {
    const sentAt = performance.now();
    await publish(posthorn, { tenant: 'other', type: 'a.b', data: 1 });
    latencies.push(performance.now() - sentAt);
    await sleep(10);
  }
  return latencies;
}

const countDeliveries = async (database: TestDatabase, tenant: string): Promise<number> => {
  const [row] = await database.query<{ count: number }>(
    `select (select count(*) from posthorn.queue where tenant = $1)::int
          + (select coalesce(sum(cardinality(endpoint_ids)), 0) from posthorn.fan_out_slices where tenant = $1)::int as count`,
    [tenant],
  );
  return row!.count;
};

test('one event for 20,000 endpoints arrives everywhere although the server is killed while it queues them', async () => {
  const database = await newDatabase();
  const receiver = await newReceiver();
  const first = await start(database);
  const count = 20_000;
  await createManyEndpoints(database, { tenant: 'wide', url: receiver.url, count });
  const { id, deliveries } = await publish(first, { tenant: 'wide', type: 'a.b', data: 1 });
  expect(deliveries).toBe(count);
  const unwritten = async (): Promise<number> => {
    const [row] = await database.query<{ count: number }>(
      'select coalesce(sum(cardinality(endpoint_ids)), 0)::int as count from posthorn.fan_out_slices',
    );
    return row!.count;
  };
  await eventually('some slices are written', async () => (await unwritten()) < count - 4_000);
  await first.kill('SIGKILL');
  const left = await unwritten();
  expect(left).toBeGreaterThan(0);

  const second = await start(database, { POSTHORN_SWEEP_MS: '1s' });
  const delivered = async (): Promise<number> => {
    const [row] = await database.query<{ count: number }>(
      `select count(*)::int as count from posthorn.deliveries where status = 'delivered'`,
    );
    return row!.count;
  };
  let last = 0;
  await eventually(
    'everything is delivered',
    async () => {
      last = await delivered();
      return last === count;
    },
    { timeoutMs: 240_000, saw: () => last },
  );
  const { body } = await second.api('GET', `/v1/events/${id}`);
  expect(body).toMatchObject({ deliveries: count, unwritten_deliveries: 0 });
  const arrivals = new Map<string, number>();
  for (const { path } of receiver.requests) arrivals.set(path, (arrivals.get(path) ?? 0) + 1);
  expect(arrivals.size).toBe(count);
  // Only requests whose result was not recorded when the server died may arrive twice.
  const twice = [...arrivals.values()].filter((times) => times > 1);
  expect(Math.max(...arrivals.values())).toBeLessThanOrEqual(2);
  expect(twice.length).toBeLessThan(2_000);
});

test.each([
  [500, 200],
  [500, 1_000],
])('%i events for %i endpoints each do not delay another tenant', async (events, endpoints) => {
  const database = await newDatabase();
  const posthorn = await start(database);
  await createManyEndpoints(database, { tenant: 'wide', url: NOWHERE, count: endpoints });
  await publish(posthorn, { tenant: 'other', type: 'a.b', data: 0 });
  const startedAt = performance.now();
  let isOver = false;
  const deliver_at = tomorrow();
  const wide = Array.from({ length: events }, (_, n) => ({
    tenant: 'wide',
    type: 'a.b',
    data: n,
    deliver_at,
  }));
  const attack = posthorn
    .api('POST', '/v1/events/batch', { events: wide }, { timeoutMs: 240_000 })
    .finally(() => {
      isOver = true;
    });
  const latencies = await publishMeanwhile(posthorn, () => isOver);
  const attackMs = performance.now() - startedAt;
  const { body } = await attack;
  // Events that could not be stored in time are refused with 503, and nothing of them is stored.
  const accepted = body.results.filter((result: { deliveries?: number }) => result.deliveries === endpoints);
  expect(await countDeliveries(database, 'wide')).toBe(accepted.length * endpoints);
  expect(accepted.length).toBeGreaterThan(0);
  // Stored as one batch, the attack delayed others by about its whole time.
  expect(Math.max(...latencies)).toBeLessThan(Math.max(2_000, attackMs / 3));
  expect(await peakMemory(posthorn)).toBeLessThan(600);
});

test('500 rows of the outbox for 2,000 endpoints each all become events, in bounded memory', async () => {
  const database = await newDatabase();
  const posthorn = await start(database);
  await createManyEndpoints(database, { tenant: 'wide', url: NOWHERE, count: 2_000 });
  await database.query(
    `select posthorn.publish('a.b', to_json(n), 'wide', deliver_at => now() + interval '1 day') from generate_series(1, 500) n`,
  );
  let isOver = false;
  const drained = eventually(
    'the outbox is empty',
    async () => (await database.query('select from posthorn.outbox limit 1')).length === 0,
    { timeoutMs: 280_000 },
  ).finally(() => {
    isOver = true;
  });
  const latencies = await publishMeanwhile(posthorn, () => isOver);
  await drained;
  expect(await countDeliveries(database, 'wide')).toBe(1_000_000);
  expect(await database.query('select from posthorn.outbox_rejected')).toEqual([]);
  expect(Math.max(...latencies)).toBeLessThan(3_000);
  expect(await peakMemory(posthorn)).toBeLessThan(600);
});

test('one event for 100,000 endpoints is accepted and written, in bounded memory, while other tenants are served', async () => {
  const database = await newDatabase();
  const posthorn = await start(database);
  const count = 100_000;
  for (let made = 0; made < count; made += 20_000)
    await createManyEndpoints(database, { tenant: 'wide', url: NOWHERE, count: 20_000 });
  await publish(posthorn, { tenant: 'other', type: 'a.b', data: 0 });
  let isOver = false;
  const attack = (async () => {
    const event = { tenant: 'wide', type: 'a.b', data: 1, deliver_at: tomorrow() };
    const accepted = await publish(posthorn, event, { timeoutMs: 60_000 });
    expect(accepted.deliveries).toBe(count);
    await eventually(
      'every delivery is written',
      async () => (await database.query('select from posthorn.fan_out_slices limit 1')).length === 0,
      { timeoutMs: 240_000 },
    );
    const { body } = await posthorn.api('GET', `/v1/events/${accepted.id}`);
    expect(body).toMatchObject({ deliveries: count, unwritten_deliveries: 0 });
  })().finally(() => {
    isOver = true;
  });
  const latencies = await publishMeanwhile(posthorn, () => isOver);
  await attack;
  expect(await countDeliveries(database, 'wide')).toBe(count);
  expect(Math.max(...latencies)).toBeLessThan(3_000);
  expect(await peakMemory(posthorn)).toBeLessThan(600);
});
