/** What happens to records that are rejected, deleted by Kafka or aborted by their producer (SCL-2). */
import { setTimeout } from 'node:timers/promises';
import { Producer, stringSerializers } from '@platformatic/kafka';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { createTopic, deleteRecords, deleteTopic, newProducer } from '../../support/kafka/topics.ts';
import { needs } from '../../support/needs.ts';
import {
  expectStatus,
  MAIN,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
} from '../../support/posthorn.ts';
import { startProcess } from '../../support/processes.ts';

const missing = missingKafka();
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

const numbersIn = async (database: TestDatabase): Promise<number[]> =>
  (
    await database.query<{ n: number }>(
      "select (convert_from(data, 'UTF8')::json ->> 'n')::int as n from posthorn.events order by 1",
    )
  ).map(({ n }) => n);

const untilNumbers = (database: TestDatabase, wanted: readonly number[]) =>
  eventually(`the events ${wanted.join()}`, async () => (await numbersIn(database)).join() === wanted.join());

describe('SCL-2: rejected records', needs(missing), () => {
  test('can be looked at, retried with a better mapping, and discarded', async () => {
    const topic = await createTopic(broker.address);
    await newProducer(
      broker.address,
      topic,
    )([
      { key: 'k', value: '{"n":1,"kind":"a.b"}', headers: { h: 'x' } },
      { value: 'not json' },
      { value: '{"n":2,"kind":"a.b"}' },
    ]);
    const database = await newDatabase();
    const before = await start(database, topic, { POSTHORN_KAFKA_TYPE: '$.type' });
    const rejected = await eventually('three are rejected', async () => {
      const { body } = await expectStatus(before.api('GET', '/v1/sources/kafka/rejected'), 200);
      return body.data.length === 3 && (body.data as { id: string; offset: number }[]);
    });
    const { id } = rejected.find(({ offset }) => offset === 0)!;
    expect(
      (await expectStatus(before.api('GET', `/v1/sources/kafka/rejected/${id}`), 200)).body,
    ).toMatchObject({
      topic,
      partition: 0,
      offset: 0,
      reason: 'type: the record has no value at $.type',
      key: 'k',
      value: '{"n":1,"kind":"a.b"}',
      headers: [{ name: 'h', value: 'x' }],
    });
    await before.stop();

    const after = await start(database, topic, { POSTHORN_KAFKA_TYPE: '$.kind' });
    await expectStatus(after.api('POST', `/v1/sources/kafka/rejected/${id}/retry`), 202);
    await untilNumbers(database, [1]);
    expect((await expectStatus(after.api('GET', `/v1/events/${id}`), 200)).body).toMatchObject({
      type: 'a.b',
    });
    await expectStatus(after.api('POST', '/v1/sources/kafka/rejected/retry', { topic }), 200);
    await untilNumbers(database, [1, 2]);
    const left = await eventually('the other is rejected again', async () => {
      const { body } = await after.api('GET', `/v1/sources/kafka/rejected?topic=${topic}`);
      return body.data.length === 1 && (body.data[0] as { id: string; reason: string });
    });
    await expectStatus(after.api('DELETE', `/v1/sources/kafka/rejected/${left.id}`), 204);
    await expectStatus(after.api('GET', `/v1/sources/kafka/rejected/${left.id}`), 404);
  });

  test('of a topic that was deleted can be retried by a process that reads another', async () => {
    const [topic, other] = [await createTopic(broker.address), await createTopic(broker.address)];
    await newProducer(broker.address, topic)([{ value: '{"n":1,"kind":"a.b"}' }]);
    const database = await newDatabase();
    const before = await start(database, topic, { POSTHORN_KAFKA_TYPE: '$.type' });
    await eventually('it is rejected', async () => {
      const { body } = await expectStatus(before.api('GET', '/v1/sources/kafka/rejected'), 200);
      return body.data.length === 1;
    });
    await before.stop();
    await deleteTopic(broker.address, topic);

    const after = await start(database, other, { POSTHORN_KAFKA_TYPE: '$.kind' });
    const { body } = await expectStatus(after.api('GET', '/v1/sources'), 200);
    expect(body.kafka.partitions).toContainEqual(
      expect.objectContaining({ topic, rejected: 1, paused_reason: 'topic_removed' }),
    );
    await expectStatus(after.api('POST', '/v1/sources/kafka/rejected/retry', {}), 200);
    await untilNumbers(database, [1]);
    await eventually('its partition is listed no more', async () => {
      const answer = await expectStatus(after.api('GET', '/v1/sources'), 200);
      return answer.body.kafka.partitions.every((each: { topic: string }) => each.topic !== topic);
    });
  });

  test('the CLI shows the lag and the rejected records, retries and discards them', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    await produce([{ value: '{"n":1}' }, { value: 'not json' }]);
    const database = await newDatabase();
    const posthorn = await start(database, topic);
    await untilNumbers(database, [1]);
    const run = async (...args: string[]): Promise<string> => {
      const { ended, output } = startProcess([MAIN, 'kafka', ...args], {
        env: { ...TEST_SETTINGS, POSTHORN_PUBLIC_URL: posthorn.url },
      });
      expect(await ended, output()).toBe(0);
      return output();
    };
    await eventually('it is read', async () =>
      (await run('status')).includes(`${topic}/0: position 2, lag 0, 1 rejected, read by `),
    );
    const [, id] = /^(evt_\w+) {2}/m.exec(await run('rejected'))!;
    expect(await run('rejected')).toContain(`${topic}/0/1  data: is not valid JSON`);
    expect(await run('retry')).toContain('1 record will be retried.');
    await eventually('it is rejected again', async () => (await run('rejected')).includes(id!));
    expect(await run('discard', '--event', id!)).toContain(`Discarded ${id}.`);
    expect(await run('rejected')).toContain('No record was rejected.');
    await produce(Array.from({ length: 12 }, () => ({ value: 'not json' })));
    await eventually('twelve are rejected', async () => (await run('status')).includes('12 rejected'));
    expect(await run('discard', '--topic', 'another')).toContain('Discarded 0 records of another.');
    expect(await run('discard', '--topic', topic)).toContain(`Discarded 12 records of ${topic}.`);
    expect(await run('rejected')).toContain('No record was rejected.');
  });
});

describe('SCL-2: what Kafka has deleted', needs(missing), () => {
  test('is counted as lost, and reading goes on with the oldest record', async () => {
    const topic = await createTopic(broker.address);
    const produce = newProducer(broker.address, topic);
    const database = await newDatabase();
    await produce([{ value: '{"n":1}' }]);
    const before = await start(database, topic);
    await untilNumbers(database, [1]);
    await before.stop();
    await produce([2, 3, 4].map((n) => ({ value: JSON.stringify({ n }) })));
    await deleteRecords(broker.address, topic, 3n);
    const after = await start(database, topic);
    await untilNumbers(database, [1, 4]);
    const { body } = await expectStatus(after.api('GET', '/v1/sources'), 200);
    expect(body.kafka.partitions).toMatchObject([{ topic, partition: 0, position: 4, lost: 2 }]);
  });

  test('a topic that was deleted and created again is read from its beginning', async () => {
    const topic = await createTopic(broker.address);
    const database = await newDatabase();
    await newProducer(broker.address, topic)([{ value: '{"n":1}' }, { value: '{"n":2}' }]);
    const posthorn = await start(database, topic);
    await untilNumbers(database, [1, 2]);
    await posthorn.stop();
    await deleteTopic(broker.address, topic);
    await eventually('the topic is there again', async () => {
      await createTopic(broker.address, { name: topic }).catch(() => null);
      return true;
    });
    await setTimeout(500);
    await newProducer(broker.address, topic)([{ value: '{"n":3}' }]);
    await start(database, topic);
    await untilNumbers(database, [1, 2, 3]);
  });
});

test('SCL-2: records of aborted transactions never become events', needs(missing), async () => {
  const topic = await createTopic(broker.address);
  const database = await newDatabase();
  await start(database, topic);
  const producer = new Producer({
    clientId: 'test',
    bootstrapBrokers: [broker.address],
    serializers: stringSerializers,
    transactionalId: topic,
    idempotent: true,
  });
  onTestFinished(() => producer.close(true));
  const send = async (numbers: readonly number[], end: 'commit' | 'abort'): Promise<void> => {
    const transaction = await producer.beginTransaction();
    for (const n of numbers)
      await transaction.send({ messages: [{ topic, value: JSON.stringify({ n }) }], acks: -1 });
    await transaction[end]();
  };
  await send([1, 2], 'commit');
  await send([3], 'abort');
  await send([4], 'commit');
  await send([5, 6], 'abort');
  await send([7], 'commit');
  await untilNumbers(database, [1, 2, 4, 7]);
  await eventually('the markers are behind the position', async () => {
    const [partition] = await database.query('select position, log_end from posthorn.kafka_partitions');
    return partition!.log_end !== null && partition!.position === partition!.log_end;
  });
  expect(await numbersIn(database)).toEqual([1, 2, 4, 7]);
});
