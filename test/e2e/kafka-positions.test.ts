/** SCL-2: positions and ownership of Kafka partitions in PostgreSQL. No broker is needed. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newEventId, newId, type Uuid } from '../../src/domain/ids.ts';
import type { AppendOptions, EventRecord, EventStore } from '../../src/ports/event-store.ts';
import type { KafkaStore, OwnedPartition, ParkedRecord } from '../../src/ports/kafka-store.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { createPostgresEventStore } from '../../src/postgres/event-store.ts';
import { createPostgresKafkaStore } from '../../src/postgres/kafka-store.ts';
import { listKafkaPartitions, MAX_COUNTED } from '../../src/postgres/queries/kafka-status.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let testDatabase: TestDatabase;
let database: Database;
let store: KafkaStore;
let log: EventStore;
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
  log = createPostgresEventStore({ database, ensurePartitions: async () => {} });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  await testDatabase.query(
    'truncate posthorn.events, posthorn.kafka_records, posthorn.kafka_partitions, posthorn.kafka_consumers, posthorn.idempotency_keys',
  );
  topicId = newId(Date.now());
});

const addPartitions = (count: number, position = '0') =>
  store.addPartitions(
    'c',
    Array.from({ length: count }, (_, partition) => ({ topic: 'orders', topicId, partition, position })),
  );
const renew = (
  id: Uuid,
  leaseMs = 60_000,
  topicIds: readonly string[] = [topicId],
): Promise<readonly OwnedPartition[]> =>
  store.renewLease({ id, name: id, cluster: 'c', topicIds, leaseMs }, []);

/** As if the process had not renewed its lease for longer than every lease of this file lasts. */
const silence = (id: Uuid) =>
  testDatabase.query(
    "update posthorn.kafka_consumers set renewed_at = renewed_at - interval '61 seconds' where id = $1",
    [id],
  );

async function ownOne(): Promise<OwnedPartition> {
  await addPartitions(1);
  return (await renew(newId(Date.now())))[0]!;
}

const eventOf = (key: string | null = null, data = '{}'): EventRecord => ({
  id: newEventId(Date.now()),
  tenant: 'acme',
  type: 'a.b',
  data: Buffer.from(data),
  idempotencyKey: key,
  fingerprint: key === null ? null : Buffer.from(data),
  options: null,
  deliveries: [],
  skipped: [],
});

async function append(
  events: readonly EventRecord[],
  { id, epoch }: Pick<OwnedPartition, 'id' | 'epoch'>,
  mark: { offsets: readonly number[]; upTo: number; batchEvents: number },
) {
  const [version] = await testDatabase.query<{ version: string }>(
    'select version from posthorn.subscription_version',
  );
  const options: AppendOptions = {
    endpointVersion: Number(version!.version),
    mayBeStored: true,
    idempotencyTtlMs: 3_600_000,
    outboxSeqs: null,
    partition: {
      partitionId: id,
      epoch,
      offsets: mark.offsets.map(String),
      upTo: String(mark.upTo),
      batchEvents: mark.batchEvents,
    },
  };
  const result = await log.append(events, options);
  return result.stale ? 'stale' : [...(result.written as ReadonlySet<Uuid>)];
}

const countEvents = async (): Promise<number> =>
  (await testDatabase.query('select from posthorn.events')).length;
const positionOf = async (id: number) =>
  (
    await testDatabase.query(
      'select position::int, done::int[] from posthorn.kafka_partitions where id = $1',
      [id],
    )
  )[0];

describe('SCL-2: the commit that stores the records of a partition', () => {
  test('moves the position, and stores nothing a second time', async () => {
    const owned = await ownOne();
    const events = [eventOf(), eventOf()];
    const mark = { offsets: [0, 3], upTo: 5, batchEvents: 2 };
    expect(await append(events, owned, mark)).toEqual(events.map(({ id }) => id));
    expect(await positionOf(owned.id)).toEqual({ position: 5, done: [] });
    expect(await append([eventOf(), eventOf()], owned, mark)).toEqual([]);
    expect(await countEvents()).toBe(2);
  });

  test('records the offsets of a part of a batch, and the next commit leaves them out', async () => {
    const owned = await ownOne();
    await append([eventOf()], owned, { offsets: [1], upTo: 4, batchEvents: 3 });
    expect(await positionOf(owned.id)).toEqual({ position: 0, done: [1] });
    // As another process reads the batch again, in smaller parts.
    const again = [eventOf(), eventOf()];
    expect(await append(again, owned, { offsets: [0, 1], upTo: 2, batchEvents: 1 })).toEqual([again[0]!.id]);
    expect(await positionOf(owned.id)).toEqual({ position: 2, done: [] });
    expect(await countEvents()).toBe(2);
  });

  test('keeps the offsets above the new position', async () => {
    const owned = await ownOne();
    await append([eventOf(), eventOf()], owned, { offsets: [1, 7], upTo: 9, batchEvents: 9 });
    await append([eventOf()], owned, { offsets: [0], upTo: 2, batchEvents: 1 });
    expect(await positionOf(owned.id)).toEqual({ position: 2, done: [7] });
    expect(await append([eventOf()], owned, { offsets: [7], upTo: 9, batchEvents: 1 })).toEqual([]);
  });

  test('does not count a record that lost its idempotency key as stored', async () => {
    const owned = await ownOne();
    await append([eventOf('k')], owned, { offsets: [0], upTo: 1, batchEvents: 1 });
    expect(
      await append([eventOf('k', '{"other":1}'), eventOf()], owned, {
        offsets: [1, 2],
        upTo: 3,
        batchEvents: 2,
      }),
    ).toHaveLength(1);
    expect(await positionOf(owned.id)).toEqual({ position: 1, done: [2] });
  });

  test('writes nothing for a process that has lost the partition', async () => {
    await addPartitions(1);
    const first = newId(Date.now());
    const owned = (await renew(first))[0]!;
    await silence(first);
    const [taken] = await renew(newId(Date.now()));
    expect(taken).toMatchObject({ id: owned.id, epoch: String(Number(owned.epoch) + 1) });
    await expect(append([eventOf()], owned, { offsets: [0], upTo: 1, batchEvents: 1 })).rejects.toMatchObject(
      {
        failure: 'fenced',
      },
    );
    expect(await store.advance({ ...owned, position: '9', parked: [] })).toBe(false);
    expect(await countEvents()).toBe(0);
    expect(await positionOf(owned.id)).toEqual({ position: 0, done: [] });
  });
});

describe('SCL-2: partitions are divided among the processes', () => {
  test('evenly, and a process that stops or dies gives its own to the others', async () => {
    await addPartitions(4);
    const [a, b] = [newId(Date.now()), newId(Date.now())];
    expect(await renew(a)).toHaveLength(4);
    expect(await renew(b)).toHaveLength(0);
    const released = (await renew(a)).filter(({ role }) => role === 'release');
    expect(released).toHaveLength(2);
    await store.releasePartitions(
      a,
      released.map(({ id }) => id),
    );
    expect(await renew(b)).toHaveLength(2);
    await store.removeConsumer(a);
    expect(await renew(b)).toHaveLength(4);
    await silence(b);
    expect(await renew(a)).toHaveLength(4);
  });

  test('and a renewal that is slower than the lease keeps the partitions of its process', async () => {
    await addPartitions(2);
    expect(await renew(newId(Date.now()), 0)).toHaveLength(2);
  });

  test("and those of a dead process are taken over after a step back of the database's clock", async () => {
    await addPartitions(2);
    const [dead, other] = [newId(Date.now()), newId(Date.now())];
    expect(await renew(dead)).toHaveLength(2);
    // It renewed before the clock stepped back.
    await testDatabase.query(
      "update posthorn.kafka_consumers set renewed_at = renewed_at + interval '40 days'",
    );
    expect(await renew(other)).toHaveLength(0);
    await silence(dead);
    expect(await renew(other)).toHaveLength(2);
  });

  test('that read them: processes with different topics leave no partition unread', async () => {
    const [x, y] = ['x', 'y'];
    for (const topic of [x, y])
      await store.addPartitions(
        'c',
        [0, 1].map((partition) => ({ topic, topicId: topic, partition, position: '0' })),
      );
    const [a, b, c] = [newId(Date.now()), newId(Date.now()), newId(Date.now())];
    for (let n = 0; n < 3; n++)
      for (const [id, topics] of [
        [a, [x]],
        [b, [x, y]],
        [c, []],
      ] as const) {
        const released = (await renew(id, 60_000, topics)).filter(({ role }) => role === 'release');
        await store.releasePartitions(
          id,
          released.map((each) => each.id),
        );
      }
    const topicsOf = async (id: Uuid, topics: readonly string[]) =>
      (await renew(id, 60_000, topics)).map(({ topic, role }) => `${topic} ${role}`);
    expect(await topicsOf(a, [x])).toEqual(['x read']);
    expect(await topicsOf(b, [x, y])).toEqual(['x read', 'y read', 'y read']);
    expect(await topicsOf(c, [])).toEqual([]);
  });

  test('a known partition keeps its position', async () => {
    await addPartitions(1, '5');
    await addPartitions(2, '0');
    const partitions = await renew(newId(Date.now()));
    expect(partitions.map(({ position }) => position)).toEqual(['5', '0']);
  });

  test('topics that were read in this cluster, or did not exist once, are known by name', async () => {
    await addPartitions(2);
    await store.recordAwaitedTopics(['later', 'other']);
    await store.recordAwaitedTopics(['later']);
    expect(await store.listKnownTopics('c')).toEqual(new Set(['orders', 'later', 'other']));
    expect(await store.listKnownTopics('another')).toEqual(new Set(['later', 'other']));
  });
});

describe('SCL-2: records that are set aside', () => {
  const parked = (offset: number, parts: Partial<ParkedRecord> = {}): ParkedRecord => ({
    id: newEventId(Date.now()),
    offset: String(offset),
    state: 'waiting',
    tenant: 'acme',
    key: Buffer.from([0, 255]),
    value: Buffer.from('{"a":1}'),
    headers: [
      ['ü', Buffer.from([0])],
      ['none', null],
    ],
    recordedAt: 1_800_000_000_000,
    reason: null,
    ...parts,
  });

  test('are written once, by the commit that moves the position, and read as they were', async () => {
    const owned = await ownOne();
    const records = [
      parked(0),
      parked(1, { tenant: 'other' }),
      parked(2, { state: 'rejected', reason: 'odd' }),
    ];
    const advance = { ...owned, position: '3', parked: records, lost: '2' };
    expect(await store.advance(advance)).toBe(true);
    expect(await store.advance({ ...advance, parked: [parked(0)] })).toBe(true);
    expect(await positionOf(owned.id)).toEqual({ position: 3, done: [] });
    expect(await store.readWaiting(owned.id, { max: 9, exceptTenants: [] })).toMatchObject(
      records.slice(0, 2),
    );
    expect(await store.readWaiting(owned.id, { max: 9, exceptTenants: ['acme'] })).toMatchObject([
      records[1]!,
    ]);
    expect(Object.fromEntries(await store.countWaiting(owned.id))).toEqual({ acme: 1, other: 1 });
    const [first] = await store.readWaiting(owned.id, { max: 1, exceptTenants: [] });
    await store.setWaitingTenants([{ seq: first!.seq, tenant: 'other' }]);
    expect(Object.fromEntries(await store.countWaiting(owned.id))).toEqual({ other: 2 });
  });

  test('are counted up to a limit, so that counting many takes no time', async () => {
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

  test('become events by the commit that deletes them', async () => {
    const owned = await ownOne();
    await store.advance({ ...owned, position: '1', parked: [parked(0)] });
    const [row] = await store.readWaiting(owned.id, { max: 1, exceptTenants: [] });
    const [version] = await testDatabase.query<{ version: string }>(
      'select version from posthorn.subscription_version',
    );
    const options = {
      endpointVersion: Number(version!.version),
      mayBeStored: true,
      idempotencyTtlMs: 1000,
      outboxSeqs: [row!.seq],
      fromParkedRecords: true,
    };
    const event = { ...eventOf(), id: row!.id };
    expect(await log.append([event], options)).toMatchObject({ written: new Set([row!.id]) });
    expect(await log.append([event], options)).toMatchObject({ written: new Set() });
    expect(await store.readWaiting(owned.id, { max: 1, exceptTenants: [] })).toEqual([]);
    expect(await countEvents()).toBe(1);
  });

  test('are stored by any process when their topic was deleted, and shown until then', async () => {
    const owned = await ownOne();
    await store.advance({ ...owned, position: '1', parked: [parked(0)] });
    const [old, created, removed] = [topicId, newId(Date.now()), newId(Date.now())];
    topicId = created;
    await addPartitions(1);
    const list = async () =>
      (await listKafkaPartitions(database.pool('lookup'), ['orders'])).map(
        ({ waiting, pausedReason, lag }) => ({ waiting, pausedReason, lag }),
      );
    const current = { waiting: 0, pausedReason: null, lag: 0 };
    expect(await list()).toEqual([{ waiting: 1, pausedReason: 'topic_removed', lag: 0 }, current]);
    await testDatabase.query('truncate posthorn.kafka_consumers');
    const [a, b] = [newId(Date.now()), newId(Date.now())];
    const rolesOf = async (id: Uuid, topicIds: readonly string[]) =>
      (await renew(id, 60_000, topicIds)).map((each) => `${each.topicId} ${each.role}`);
    expect(await rolesOf(a, [created])).toEqual([`${old} drain`, `${created} read`]);
    // A process that reads the topic takes precedence.
    expect(await rolesOf(b, [old])).toEqual([]);
    expect(await rolesOf(a, [created])).toEqual([`${old} release`, `${created} read`]);
    await store.removeConsumer(b);
    expect(await rolesOf(a, [created])).toEqual([`${old} drain`, `${created} read`]);
    const [row] = await store.readWaiting(owned.id, { max: 1, exceptTenants: [] });
    await store.deleteWaiting([row!.seq]);
    expect(await rolesOf(a, [created])).toEqual([`${old} release`, `${created} read`]);
    expect(await rolesOf(a, [removed])).toEqual([`${old} release`, `${created} release`]);
    expect(await list()).toEqual([current]);
  });
});
