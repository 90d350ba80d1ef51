/** Events that are read from Kafka: exactly once, whatever dies (SCL-2). */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { createTopic, newProducer } from '../../support/kafka/topics.ts';
import { needs } from '../../support/needs.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../../support/posthorn.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const missing = missingKafka();
const DAY_MS = 86_400_000;
let broker: TestBroker;

beforeAll(async () => {
  if (missing === null) broker = await TestBroker.start();
});
afterAll(() => broker?.remove());

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function start(
  database: TestDatabase,
  topic: string,
  env: Readonly<Record<string, string>> = {},
): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({
    database,
    env: {
      POSTHORN_KAFKA_BROKERS: broker.address,
      POSTHORN_KAFKA_SOURCE_TOPICS: topic,
      POSTHORN_KAFKA_RENEW_MS: '200ms',
      POSTHORN_KAFKA_LEASE_MS: '1500ms',
      ...env,
    },
  });
  onTestFinished(async () => {
    await posthorn.kill('SIGKILL').catch(() => {});
  });
  return posthorn;
}

/** The numbers in the data of all events, sorted. A number twice: a record became two events. */
const storedNumbers = async (database: TestDatabase): Promise<number[]> =>
  (
    await database.query<{ n: number }>(
      "select (convert_from(data, 'UTF8')::json ->> 'n')::int as n from posthorn.events order by 1",
    )
  ).map(({ n }) => n);

const countEvents = async (database: TestDatabase): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from posthorn.events'))[0]!.n;

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const recordsOf = (wanted: readonly number[], partitions = 1) =>
  wanted.map((n) => ({ value: JSON.stringify({ n }), partition: n % partitions }));

const untilStored = (database: TestDatabase, count: number, timeoutMs = 60_000): Promise<unknown> =>
  eventually(`${count} events`, async () => (await countEvents(database)) >= count, { timeoutMs });

describe('SCL-2: Kafka as a source', needs(missing), () => {
  test('records become events, with the fields that they carry', async () => {
    const topic = await createTopic(broker.address, { partitions: 3 });
    const produce = newProducer(broker.address, topic);
    await produce([
      { value: '{"n": 1}', headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` } },
      {
        value: '{"n": 2}',
        headers: {
          ce_specversion: '1.0',
          ce_type: 'order.paid',
          ce_id: '7',
          ce_source: '/s',
          ce_tenant: 'acme',
        },
      },
    ]);
    const database = await newDatabase();
    await start(database, topic, { POSTHORN_KAFKA_TYPE: 'header:ce_type,text:plain' });
    await untilStored(database, 2);
    const events = await database.query(
      "select type, tenant, convert_from(data, 'UTF8') as data, idempotency_key as key, options ->> 'headers' as headers from posthorn.events order by type",
    );
    expect(events).toMatchObject([
      { type: 'order.paid', tenant: 'acme', data: '{"n": 2}', key: '/s#7' },
      {
        type: 'plain',
        tenant: 'default',
        data: '{"n": 1}',
        key: null,
        headers: expect.stringContaining('aaaa'),
      },
    ]);
  });

  test('kill -9 of the process at any time: no record is lost, and none becomes two events', async () => {
    const topic = await createTopic(broker.address, { partitions: 4 });
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const total = 20_000;
    let produced = 0;
    const producing = (async () => {
      for (; produced < total; produced += 500) {
        await produce(recordsOf(numbers(produced, produced + 500), 4));
        await setTimeout(20);
      }
    })();
    for (const share of [0.1, 0.3, 0.5, 0.7]) {
      const posthorn = await start(database, topic);
      await untilStored(database, total * share);
      await posthorn.kill('SIGKILL');
    }
    await start(database, topic);
    await producing;
    await untilStored(database, total);
    await setTimeout(1_000);
    expect(await storedNumbers(database)).toEqual(numbers(0, total));
  });

  test('the same with idempotency keys, a large fan-out, and lost connections to PostgreSQL', async () => {
    const topic = await createTopic(broker.address, { partitions: 2 });
    const database = await newDatabase();
    const proxy = await startTcpProxy(database.url);
    onTestFinished(() => proxy.cut());
    const setUp = await startTestPosthorn({ database });
    onTestFinished(async () => {
      await setUp.kill('SIGKILL').catch(() => {});
    });
    for (let n = 0; n < 6; n += 1)
      await createEndpoint(setUp, { url: 'https://example.com/', tenant: 'default', paused: true });
    await setUp.stop();
    const total = 6_000;
    // Every tenth record repeats the key and the content of the one before it.
    const keyOf = (n: number): number => (n % 10 === 9 ? n - 1 : n);
    const produce = newProducer(broker.address, topic);
    for (let from = 0; from < total; from += 1000)
      await produce(
        numbers(from, from + 1000).map((n) => ({
          value: JSON.stringify({ n: keyOf(n) }),
          partition: n < total / 2 ? 0 : 1,
          headers: { key: String(keyOf(n)) },
        })),
      );
    const env = {
      POSTHORN_KAFKA_IDEMPOTENCY_KEY: 'header:key',
      // Several statements per batch.
      POSTHORN_INGEST_BATCH_ROWS: '1000',
    };
    for (const share of [0.1, 0.4, 0.7]) {
      const posthorn = await start({ ...database, url: proxy.url }, topic, env);
      await untilStored(database, total * share);
      await proxy.cut();
      await proxy.restore();
      await untilStored(database, total * (share + 0.15));
      await posthorn.kill('SIGKILL');
    }
    await start(database, topic, env);
    await untilStored(database, total);
    await setTimeout(1_000);
    const stored = await database.query<{ n: number; repeats: boolean; deliveries: number }>(
      `select (convert_from(data, 'UTF8')::json ->> 'n')::int as n, options ? 'duplicate_of' as repeats, deliveries
         from (select data, options::jsonb as options, deliveries from posthorn.events) e`,
    );
    expect(stored).toHaveLength(total);
    const first = stored.filter(({ repeats }) => !repeats);
    expect(first.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual(
      numbers(0, total).filter((n) => keyOf(n) === n),
    );
    expect(new Set(first.map(({ deliveries }) => deliveries))).toEqual(new Set([6]));
    expect((await database.query('select from posthorn.queue')).length).toBe(6 * first.length);
  });

  test('two processes share the partitions, and take over those of one that dies or stops', async () => {
    const topic = await createTopic(broker.address, { partitions: 4 });
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const shares = async (): Promise<number[]> =>
      (
        await database.query<{ n: number }>(
          'select count(*)::int as n from posthorn.kafka_partitions where owner is not null group by owner order by 1',
        )
      ).map(({ n }) => n);
    const first = await start(database, topic);
    await produce(recordsOf(numbers(0, 1000), 4));
    await eventually('one process owns all', async () => (await shares()).join() === '4');
    const second = await start(database, topic);
    await produce(recordsOf(numbers(1000, 2000), 4));
    await eventually('both own half', async () => (await shares()).join() === '2,2');
    await first.kill('SIGKILL');
    await produce(recordsOf(numbers(2000, 3000), 4));
    await untilStored(database, 3000);
    const third = await start(database, topic);
    await eventually('both own half again', async () => (await shares()).join() === '2,2');
    await second.stop();
    await produce(recordsOf(numbers(3000, 4000), 4));
    await untilStored(database, 4000);
    await third.stop();
    expect(await storedNumbers(database)).toEqual(numbers(0, 4000));
  });

  test('a process that was paused while another took its partitions writes nothing', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const first = await start(database, topic);
    await produce(recordsOf(numbers(0, 100)));
    await untilStored(database, 100);
    process.kill(first.pid, 'SIGSTOP');
    await produce(recordsOf(numbers(100, 3000)));
    await start(database, topic);
    await untilStored(database, 3000);
    process.kill(first.pid, 'SIGCONT');
    await produce(recordsOf(numbers(3000, 6000)));
    await untilStored(database, 6000);
    await setTimeout(1_000);
    expect(await storedNumbers(database)).toEqual(numbers(0, 6000));
  });

  test('kill -9 of the broker: reading goes on where it ended', async () => {
    const topic = await createTopic(broker.address, { partitions: 2 });
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const posthorn = await start(database, topic);
    await produce(recordsOf(numbers(0, 1000), 2));
    await untilStored(database, 1000);
    await broker.restart();
    await newProducer(broker.address, topic)(recordsOf(numbers(1000, 2000), 2));
    await untilStored(database, 2000);
    expect(await storedNumbers(database)).toEqual(numbers(0, 2000));
    await posthorn.stop();
  });

  test('POSTHORN_KAFKA_START=latest skips what is in a new topic, and nothing later', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    await produce(recordsOf(numbers(0, 10)));
    const database = await newDatabase();
    const first = await start(database, topic, { POSTHORN_KAFKA_START: 'latest' });
    await eventually(
      'the partition is known',
      async () =>
        (await database.query('select from posthorn.kafka_partitions where owner is not null')).length === 1,
    );
    await first.kill('SIGKILL');
    await produce(recordsOf(numbers(10, 20)));
    await start(database, topic, { POSTHORN_KAFKA_START: 'latest' });
    await untilStored(database, 10);
    expect(await storedNumbers(database)).toEqual(numbers(10, 20));
  });

  test('LIF-3: the answer to the expunge of a tenant says until when the topics hold its records', async () => {
    const database = await newDatabase();
    const [days, compacted] = [
      await createTopic(broker.address, {
        settings: { 'retention.ms': String(3 * DAY_MS), 'segment.ms': String(DAY_MS) },
      }),
      await createTopic(broker.address, { settings: { 'cleanup.policy': 'compact' } }),
    ];
    const expunge = async (topics: string): Promise<unknown> => {
      const posthorn = await start(database, topics);
      const tenant = newTenant();
      await publish(posthorn, { tenant, type: 'a.b', data: 1 });
      const path = `/v1/tenants/${tenant}?expunge=true`;
      const counted = await expectStatus(posthorn.api('DELETE', `${path}&dry_run=true`), 200);
      expect(counted.headers['posthorn-kafka-until']).toBeUndefined();
      const answer = await expectStatus(posthorn.api('DELETE', `${path}&confirm=${tenant}`), 202);
      await posthorn.stop();
      return answer.headers['posthorn-kafka-until'];
    };
    const beforeMs = Date.now();
    const until = Date.parse(String(await expunge(days)));
    expect(until).toBeGreaterThanOrEqual(beforeMs + 4 * DAY_MS - 1_000);
    expect(until).toBeLessThanOrEqual(Date.now() + 4 * DAY_MS + 1_000);
    expect(await expunge(`${days},${compacted}`)).toBe('unlimited');
    expect(await expunge('missing')).toBe('unknown');
  });

  test('records that are no events are set aside with the reason, and block nothing', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const posthorn = await start(database, topic, { POSTHORN_KAFKA_TYPE: '$.type' });
    await produce([
      { value: '{"type":"a.b","n":1}' },
      { value: 'not json' },
      { value: '{"n":2}' },
      { value: '{"type":"not a type","n":3}' },
      { value: '{"type":"a.b","n":4}' },
    ]);
    await untilStored(database, 2);
    await eventually(
      'all are handled',
      async () =>
        (await database.query<{ position: string }>('select position from posthorn.kafka_partitions'))[0]!
          .position === '5',
    );
    const rejected = await database.query(
      "select record_offset::int as at, reason from posthorn.kafka_records where state = 'rejected' order by 1",
    );
    expect(rejected).toEqual([
      { at: 1, reason: expect.stringContaining('type: the record has no value at $.type') },
      { at: 2, reason: expect.stringContaining('type: the record has no value at $.type') },
      { at: 3, reason: expect.stringContaining('dot-separated segments') },
    ]);
    await posthorn.stop();
  });

  test('VER-1: records that do not match their schema are never refused, but flagged, delivered and listed', async () => {
    const topic = await createTopic(broker.address);
    const database = await newDatabase();
    const posthorn = await start(database, topic, {
      POSTHORN_KAFKA_TYPE: 'header:type',
      POSTHORN_KAFKA_TENANT: 'header:tenant',
    });
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { tenant, url: receiver.url });
    const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } };
    await expectStatus(posthorn.api('PUT', '/v1/event-types/order.paid/versions/v1', { schema }), 201);
    await expectStatus(posthorn.api('PUT', '/v1/event-types/order.paid', { validation: 'strict' }), 200);
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { validation: 'strict' }), 200);
    // The API refuses both.
    for (const type of ['order.paid', 'not.there']) {
      const refused = await expectStatus(
        posthorn.api('POST', '/v1/events', { tenant, type, data: { id: 1 } }),
        422,
      );
      expect(refused.body.code).toBe('payload_invalid');
    }

    const produce = newProducer(broker.address, topic);
    const record = (type: string, value: string) => ({ value, headers: { tenant, type } });
    await produce([
      record('order.paid', '{"id":1}'),
      record('not.there', '{"id":"2"}'),
      record('order.paid', '{"id":"3"}'),
    ]);
    await receiver.waitFor(3);
    const { body: events } = await expectStatus(posthorn.api('GET', `/v1/events?tenant=${tenant}`), 200);
    expect(events.data).toHaveLength(3);
    expect(events.data).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'order.paid',
          schema_version: 'v1',
          schema_errors: [{ path: 'data.id', message: 'must be string' }],
        }),
        expect.objectContaining({
          type: 'not.there',
          schema_errors: [{ path: 'type', message: 'is not in the catalogue' }],
        }),
        expect.objectContaining({ type: 'order.paid', schema_version: 'v1', schema_errors: [] }),
      ]),
    );
    await eventually('the failure is listed', async () => {
      const { body } = await posthorn.api('GET', `/v1/event-types/order.paid/failures?tenant=${tenant}`);
      return body.data.some(({ result }: { result: string }) => result === 'flagged');
    });
    await eventually(
      'all are handled',
      async () =>
        (await database.query<{ position: string }>('select position from posthorn.kafka_partitions'))[0]!
          .position === '3',
    );
    const { body: rejected } = await expectStatus(posthorn.api('GET', '/v1/sources/kafka/rejected'), 200);
    expect(rejected.data).toEqual([]);
  });

  test('a tenant over its limit waits in the overflow, in order, while others go on', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const record = (tenant: string, n: number) => ({ value: JSON.stringify({ n }), headers: { tenant } });
    const posthorn = await start(database, topic, {
      POSTHORN_KAFKA_TENANT: 'header:tenant',
      POSTHORN_TENANT_INGEST_PER_SECOND: '20',
      POSTHORN_TENANT_INGEST_BURST: '20',
    });
    await produce([...numbers(0, 60).map((n) => record('busy', n)), record('calm', 1000)]);
    await eventually('the calm tenant is served', async () => (await storedNumbers(database)).includes(1000));
    expect(await countEvents(database)).toBeLessThan(61);
    await untilStored(database, 61);
    const inOrder = await database
      .query<{ n: number }>(
        `select (convert_from(e.data, 'UTF8')::json ->> 'n')::int as n from posthorn.events e
        where tenant = 'busy' order by e.accepted_at, e.id`,
      )
      .catch(() => null);
    if (inOrder !== null) expect(inOrder.map(({ n }) => n)).toEqual(numbers(0, 60));
    await eventually(
      'nothing waits',
      async () => (await database.query('select from posthorn.kafka_records')).length === 0,
    );
    await posthorn.stop();
  });

  test('a full overflow pauses the partition, and it goes on when there is room', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    const posthorn = await start(database, topic, {
      POSTHORN_KAFKA_OVERFLOW_RECORDS: '20',
      POSTHORN_TENANT_INGEST_PER_SECOND: '20',
      POSTHORN_TENANT_INGEST_BURST: '10',
    });
    await produce(recordsOf(numbers(0, 100)));
    await eventually(
      'the partition pauses',
      async () =>
        (
          await database.query<{ reason: string | null }>(
            'select paused_reason as reason from posthorn.kafka_partitions',
          )
        )[0]?.reason === 'overflow_full',
    );
    const waiting = await database.query("select from posthorn.kafka_records where state = 'waiting'");
    expect(waiting.length).toBeLessThanOrEqual(20);
    await untilStored(database, 100);
    expect(await storedNumbers(database)).toEqual(numbers(0, 100));
    await eventually(
      'the pause ends',
      async () =>
        (
          await database.query<{ reason: string | null }>(
            'select paused_reason as reason from posthorn.kafka_partitions',
          )
        )[0]?.reason === null,
    );
    await posthorn.stop();
  });
});
