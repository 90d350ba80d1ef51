/** SCL-2: records of Kafka partitions that are set aside, as operators see them. The rules are in test/conformance/kafka-store.ts. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { newEventId, newId, type Uuid } from '../../src/domain/ids.ts';
import type { KafkaStore, OwnedPartition } from '../../src/ports/kafka-store.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createPostgresKafkaStore } from '../../src/postgres/kafka-store.ts';
import { listKafkaPartitions, MAX_COUNTED } from '../../src/postgres/queries/kafka-status.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let testDatabase: TestDatabase;
let database: Database;
let store: KafkaStore;
let topicId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({
    connectionString: testDatabase.url,
    apiConnections: 2,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  store = createPostgresKafkaStore(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  await testDatabase.query(
    'truncate posthorn.kafka_records, posthorn.kafka_partitions, posthorn.kafka_consumers',
  );
  topicId = newId(Date.now());
});

const addPartition = () =>
  store.addPartitions('c', [{ topic: 'orders', topicId, partition: 0, position: '0' }]);
const renew = (id: Uuid): Promise<readonly OwnedPartition[]> =>
  store.renewLease({ id, name: id, cluster: 'c', topicIds: [topicId], leaseMs: 60_000 }, []);

async function ownOne(): Promise<OwnedPartition> {
  await addPartition();
  return (await renew(newId(Date.now())))[0]!;
}

test('SCL-2: records that are set aside are counted up to a limit, so that counting many takes no time', async () => {
  const owned = await ownOne();
  await testDatabase.query(
    `insert into posthorn.kafka_records (id, partition_id, record_offset, state, headers, recorded_at)
     select gen_random_uuid(), $1, n, case when n % 2 = 0 then 'waiting' else 'rejected' end, '[]', now()
       from generate_series(1, 21000) as n`,
    [owned.id],
  );
  expect(await store.countRejected(owned.id, 20)).toBe(20);
  expect(await store.countRejected(owned.id, 20_000)).toBe(10_500);
  const [consumer] = await testDatabase.query<{ id: Uuid }>('select id from posthorn.kafka_consumers');
  expect(await renew(consumer!.id)).toMatchObject([{ waiting: 100 }]);
  expect(await listKafkaPartitions(database.pool('api'), ['orders'])).toMatchObject([
    { waiting: MAX_COUNTED, rejected: MAX_COUNTED },
  ]);
});

test('SCL-2: records that are set aside are shown until they are stored when their topic was deleted', async () => {
  const owned = await ownOne();
  const record = { id: newEventId(Date.now()), offset: '0', state: 'waiting', tenant: 'acme' } as const;
  const parts = { key: null, value: Buffer.from('{}'), headers: [], recordedAt: 0, reason: null };
  await store.advance({ ...owned, position: '1', parked: [{ ...record, ...parts }] });
  topicId = newId(Date.now());
  await addPartition();
  const list = async () =>
    (await listKafkaPartitions(database.pool('lookup'), ['orders'])).map(
      ({ waiting, pausedReason, lag }) => ({ waiting, pausedReason, lag }),
    );
  const current = { waiting: 0, pausedReason: null, lag: 0 };
  expect(await list()).toEqual([{ waiting: 1, pausedReason: 'topic_removed', lag: 0 }, current]);
  const [row] = await store.readWaiting(owned.id, { max: 1, exceptTenants: [] });
  await store.deleteWaiting([row!.seq]);
  expect(await list()).toEqual([current]);
});
