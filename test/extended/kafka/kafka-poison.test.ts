/** Records and topics that could stop a partition, a process or all topics (SCL-2). */
import { Producer, stringSerializers } from '@platformatic/kafka';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { createTopic, deleteRecords, newProducer } from '../../support/kafka/topics.ts';
import { needs } from '../../support/needs.ts';
import { expectStatus, startTestPosthorn, type TestPosthorn } from '../../support/posthorn.ts';

const missing = missingKafka();
let broker: TestBroker;
beforeAll(async () => {
  // Brokers before 3.6 accept any timestamp.
  const settings = { 'log.message.timestamp.after.max.ms': '9223372036854775807' };
  if (missing === null) broker = await TestBroker.start({ settings });
});
afterAll(() => broker?.remove());

async function start(
  topic: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ database: TestDatabase; posthorn: TestPosthorn }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const posthorn = await startTestPosthorn({
    database,
    env: {
      POSTHORN_KAFKA_BROKERS: broker.address,
      POSTHORN_KAFKA_SOURCE_TOPICS: topic,
      POSTHORN_KAFKA_RENEW_MS: '200ms',
      ...env,
    },
  });
  onTestFinished(async () => {
    await posthorn.kill('SIGKILL').catch(() => {});
  });
  return { database, posthorn };
}

const untilEvents = (database: TestDatabase, count: number) =>
  eventually(
    `${count} events`,
    async () => (await database.query('select from posthorn.events')).length === count,
  );

const partitionsOf = async (posthorn: TestPosthorn) =>
  (await expectStatus(posthorn.api('GET', '/v1/sources'), 200)).body.kafka.partitions;

function rawProducer() {
  const producer = new Producer({
    clientId: 'test',
    bootstrapBrokers: [broker.address],
    serializers: stringSerializers,
    retries: 20,
    retryDelay: 200,
  });
  onTestFinished(() => producer.close(true));
  return producer;
}

describe('SCL-2: one bad record', needs(missing), () => {
  test.each(['gzip', 'zstd', 'lz4'] as const)(
    'that %s makes small pauses its partition, and the others go on',
    async (compression) => {
      const topic = await createTopic(broker.address, { partitions: 2 });
      const value = `"${'0'.repeat(70 * 1024 * 1024)}"`;
      await rawProducer().send({ messages: [{ topic, partition: 0, value }], compression });
      const produce = newProducer(broker.address, topic);
      await produce([{ partition: 1, value: '{"n":1}' }]);
      const { database, posthorn } = await start(topic);
      await eventually('the partition is paused', async () => {
        const [first] = await partitionsOf(posthorn);
        return first?.paused_reason === 'batch_too_large';
      });
      await untilEvents(database, 1);
      await produce([
        { partition: 1, value: '{"n":2}' },
        { partition: 0, value: '{"n":3}' },
      ]);
      await untilEvents(database, 2);
      await deleteRecords(broker.address, topic, 1n);
      await untilEvents(database, 3);
      await eventually('the pause ends', async () => {
        const [first] = await partitionsOf(posthorn);
        return first.paused_reason === null && first.lost === 1;
      });
    },
  );

  test('with a timestamp in nanoseconds is rejected as any other', async () => {
    const topic = await createTopic(broker.address);
    await rawProducer().send({
      messages: [
        { topic, value: 'no json', timestamp: 1_800_000_000_000_000_000n },
        { topic, value: '{"n":1}', timestamp: -1n },
      ],
    });
    const { database, posthorn } = await start(topic);
    await untilEvents(database, 1);
    const { body } = await expectStatus(posthorn.api('GET', '/v1/sources/kafka/rejected'), 200);
    expect(body.data).toMatchObject([{ offset: 0, recorded_at: '9999-12-31T23:59:59.999Z' }]);
  });

  test('too many pauses the partition until there is room', async () => {
    const topic = await createTopic(broker.address);
    await newProducer(broker.address, topic)([...'abc'].map((value) => ({ value })));
    const { database, posthorn } = await start(topic, { POSTHORN_KAFKA_REJECTED_RECORDS: '2' });
    await eventually('the partition is paused', async () => {
      const [first] = await partitionsOf(posthorn);
      return first?.paused_reason === 'rejected_full' && first.rejected === 2;
    });
    await database.query('delete from posthorn.kafka_records');
    await eventually('the third is rejected', async () => {
      const [first] = await partitionsOf(posthorn);
      return first.paused_reason === null && first.rejected === 1 && first.position === 3;
    });
  });
});
