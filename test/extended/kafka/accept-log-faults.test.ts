/** POSTHORN_BACKBONE=kafka while processes, brokers and PostgreSQL die: what got 202 is stored once (SCL-2). */
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { areInSync, moveLeaders, readPartitions } from '../../support/kafka/leaders.ts';
import { needs } from '../../support/needs.ts';
import { newTenant, startTestPosthorn, type TestPosthorn } from '../../support/posthorn.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const missing = missingKafka();
let brokers: TestBroker[] = [];

beforeAll(async () => {
  if (missing === null) brokers = await TestBroker.startCluster(3);
});
afterAll(async () => {
  await Promise.all(brokers.map((broker) => broker.remove()));
});

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function start(database: Pick<TestDatabase, 'url'>, topic: string): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({
    database,
    env: {
      POSTHORN_BACKBONE: 'kafka',
      POSTHORN_KAFKA_BROKERS: brokers.map(({ address }) => address).join(),
      POSTHORN_KAFKA_ACCEPT_TOPIC: topic,
      POSTHORN_KAFKA_ACCEPT_PARTITIONS: '6',
      POSTHORN_KAFKA_RENEW_MS: '200ms',
      POSTHORN_KAFKA_LEASE_MS: '1500ms',
    },
  });
  onTestFinished(async () => {
    await posthorn.kill('SIGKILL').catch(() => {});
  });
  return posthorn;
}

/** Publishes numbers until it is stopped. Some have an idempotency key, and are sent again until they get 202. */
class Load {
  /** Numbers that got 202, with the id in the answer. */
  readonly accepted = new Map<number, string>();
  /** Numbers whose outcome the client does not know, and did not ask for again. */
  readonly unknown = new Set<number>();
  readonly statuses = new Map<number, number>();
  #next = 0;
  #isStopped = false;
  readonly #running: Promise<void>[];

  constructor(target: () => TestPosthorn, tenants: readonly string[]) {
    this.#running = tenants.map((tenant) => this.#run(target, tenant));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running);
  }

  async #run(target: () => TestPosthorn, tenant: string): Promise<void> {
    while (!this.#isStopped) {
      const n = this.#next++;
      const isKeyed = n % 4 === 0;
      const event = { type: 'a.b', tenant, data: { n }, ...(isKeyed && { idempotency_key: `key ${n}` }) };
      for (;;) {
        const answer = await target()
          .api('POST', '/v1/events', event, { timeoutMs: 30_000 })
          .catch(() => null);
        const status = answer?.status ?? 0;
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
        if (status === 202) {
          this.accepted.set(n, answer!.body.id);
          break;
        }
        if (status !== 0 && status !== 503) throw new Error(`${status}: ${answer!.text}`);
        if (!isKeyed) {
          this.unknown.add(n);
          break;
        }
        await setTimeout(100);
      }
      await setTimeout(5);
    }
  }
}

/** Waits until everything that got 202 is stored, and checks that each is stored once, under its id. */
async function expectStoredOnce(database: TestDatabase, load: Load): Promise<void> {
  const readStored = () =>
    database.query<{ n: number; id: string }>(
      "select (convert_from(data, 'UTF8')::json ->> 'n')::int as n, posthorn.public_id('evt', id) as id from posthorn.events",
    );
  const findLost = async (): Promise<number[]> => {
    const ids = new Set((await readStored()).map(({ id }) => id));
    return [...load.accepted].filter(([, id]) => !ids.has(id)).map(([n]) => n);
  };
  await eventually('all that got 202 is stored', async () => (await findLost()).length === 0, {
    timeoutMs: 90_000,
  });
  // What was written to the topic without an answer may still be on its way.
  await setTimeout(1_000);
  const stored = await readStored();
  const byNumber = Map.groupBy(stored, ({ n }) => n);
  expect([...byNumber.values()].filter((rows) => rows.length > 1)).toEqual([]);
  const unexpected = [...byNumber.keys()].filter((n) => !load.accepted.has(n) && !load.unknown.has(n));
  expect(unexpected).toEqual([]);
}

const tenants = Array.from({ length: 8 }, newTenant);
const untilAccepted = (load: Load, more: number): Promise<unknown> => {
  const goal = load.accepted.size + more;
  return eventually(`${more} more are accepted`, () => load.accepted.size >= goal, { timeoutMs: 90_000 });
};

describe('SCL-2: faults while Kafka is the accept log', needs(missing), () => {
  test('kill -9 of the process that accepts and stores, and of the one that takes over', async () => {
    const database = await newDatabase();
    const topic = `accept-${randomUUID()}`;
    const nodes = [await start(database, topic), await start(database, topic)];
    let turn = 0;
    const load = new Load(() => nodes[turn++ % nodes.length]!, tenants);
    for (const victim of [0, 1, 0]) {
      await untilAccepted(load, 200);
      await nodes[victim]!.kill('SIGKILL');
      nodes[victim] = await start(database, topic);
    }
    await untilAccepted(load, 200);
    await load.stop();
    await expectStoredOnce(database, load);
    for (const node of nodes) await node.stop();
  });

  test('kill -9 of each broker in turn', async () => {
    const database = await newDatabase();
    const node = await start(database, `accept-${randomUUID()}`);
    const load = new Load(() => node, tenants);
    for (const broker of brokers) {
      await untilAccepted(load, 200);
      await broker.kill();
      await untilAccepted(load, 200);
      await broker.run();
    }
    await untilAccepted(load, 200);
    await load.stop();
    await expectStoredOnce(database, load);
    await node.stop();
  });

  test('other brokers lead the partitions while none fails: no request is refused, and reading goes on', async () => {
    const database = await newDatabase();
    const topic = `accept-${randomUUID()}`;
    const node = await start(database, topic);
    const load = new Load(() => node, tenants);
    const addresses = brokers.map(({ address }) => address);
    const read = () => readPartitions(addresses, topic);
    const untilInSync = async (): Promise<void> =>
      void (await eventually('all partitions have their copies', async () => areInSync(await read()), {
        timeoutMs: 60_000,
      }));
    const leadersBefore = (await read()).map(({ leader }) => leader);
    await untilAccepted(load, 100);
    await moveLeaders(addresses[0]!, topic, read, untilInSync);
    expect((await read()).filter(({ leader }, index) => leader === leadersBefore[index])).toEqual([]);
    await untilAccepted(load, 100);
    await load.stop();
    // A client that repeats a request to the former leader would be refused again and again.
    expect([...load.statuses.keys()]).toEqual([202]);
    await expectStoredOnce(database, load);
    await node.stop();
  });

  test('connections to PostgreSQL break while events are published', async () => {
    const database = await newDatabase();
    const proxy = await startTcpProxy(database.url);
    onTestFinished(() => proxy.cut());
    const node = await start({ url: proxy.url }, `accept-${randomUUID()}`);
    const load = new Load(() => node, tenants);
    for (const moment of ['request', 'answer', 'answer'] as const) {
      await untilAccepted(load, 200);
      proxy.cutAt(moment);
      await untilAccepted(load, 100);
      await proxy.cut();
      await setTimeout(1_000);
      await proxy.restore();
    }
    await untilAccepted(load, 200);
    await load.stop();
    await expectStoredOnce(database, load);
    await node.stop();
  });

  test('fewer brokers than min.insync.replicas: 503 with Retry-After, and 202 again afterwards', async () => {
    const database = await newDatabase();
    const node = await start(database, `accept-${randomUUID()}`);
    const send = (n: number) =>
      node.api('POST', '/v1/events', { type: 'a.b', tenant: tenants[0], data: { n } }, { timeoutMs: 30_000 });
    expect((await send(0)).status).toBe(202);
    await brokers[0]!.kill();
    await brokers[1]!.kill();
    await eventually('events are refused', async () => (await send(1)).status === 503, { timeoutMs: 90_000 });
    const refused = await send(2);
    expect(refused.status).toBe(503);
    expect(refused.headers['retry-after']).toBeDefined();
    await eventually('the node is not ready', async () => (await node.api('GET', '/readyz')).status === 503, {
      timeoutMs: 60_000,
    });
    await Promise.all([brokers[0]!.run(), brokers[1]!.run()]);
    await eventually('events are accepted', async () => (await send(3)).status === 202, {
      timeoutMs: 90_000,
    });
    await eventually('the node is ready', async () => (await node.api('GET', '/readyz')).status === 200, {
      timeoutMs: 60_000,
    });
    await node.stop();
  });
});
