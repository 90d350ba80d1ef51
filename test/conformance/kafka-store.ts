/** Positions and ownership of Kafka partitions, and records that are set aside. No broker is needed. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { EventRecord } from '../../src/ports/event-store.ts';
import type { OwnedPartition, ParkedRecord } from '../../src/ports/kafka-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newEventId, newId } from './support/ids.ts';
import { appendOptions, newEvent } from './support/records.ts';

const CLUSTER = 'c';
const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;

export function describeKafkaStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`SCL-2: the Kafka store in ${name}`, () => {
    let store: StoreFixture;
    let topicId: string;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(async () => {
      await store.clear();
      topicId = newId();
    });
    afterAll(() => store?.close());

    const addPartitions = (count: number, { position = '0', topic = 'orders', id = topicId } = {}) =>
      store.kafka.addPartitions(
        CLUSTER,
        Array.from({ length: count }, (_, partition) => ({ topic, topicId: id, partition, position })),
      );
    const renew = (
      id: Uuid,
      { leaseMs = LEASE_MS, topicIds = [topicId] }: { leaseMs?: number; topicIds?: readonly string[] } = {},
    ): Promise<readonly OwnedPartition[]> =>
      store.kafka.renewLease({ id, name: id, cluster: CLUSTER, topicIds, leaseMs }, []);
    /** As if the process had not renewed its lease for longer than that lasts. */
    const silence = (id: Uuid) => store.ageKafkaConsumer(id, LEASE_MS + 1_000);
    const releaseSurplus = async (id: Uuid, topicIds?: readonly string[]): Promise<number> => {
      const owned = await renew(id, topicIds === undefined ? {} : { topicIds });
      const surplus = owned.filter(({ role }) => role === 'release').map((each) => each.id);
      await store.kafka.releasePartitions(id, surplus);
      return surplus.length;
    };
    const ownOne = async (): Promise<OwnedPartition> => {
      await addPartitions(1);
      return (await renew(newId()))[0]!;
    };
    const append = async (
      events: readonly EventRecord[],
      { id, epoch }: Pick<OwnedPartition, 'id' | 'epoch'>,
      mark: { offsets: readonly number[]; upTo: number; batchEvents: number },
    ): Promise<Uuid[]> => {
      const partition = {
        partitionId: id,
        epoch,
        offsets: mark.offsets.map(String),
        upTo: String(mark.upTo),
        batchEvents: mark.batchEvents,
      };
      const result = await store.eventStore.append(
        events,
        await appendOptions(store, { mayBeStored: true, partition }),
      );
      if (result.stale) throw new Error('The endpoints have changed.');
      return [...(result.written as ReadonlySet<Uuid>)];
    };
    const isStored = async ({ id }: EventRecord): Promise<boolean> =>
      (await store.eventLookup.load([id])).has(id);

    describe('the commit that stores the records of a partition', () => {
      it('moves the position, and stores nothing a second time', async () => {
        const owned = await ownOne();
        const events = [newEvent(), newEvent()];
        const mark = { offsets: [0, 1], upTo: 2, batchEvents: 2 };
        expect(await append(events, owned, mark)).toEqual(events.map(({ id }) => id));
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 2, done: [] });
        const again = [newEvent(), newEvent()];
        expect(await append(again, owned, mark)).toEqual([]);
        expect(await Promise.all(again.map(isStored))).toEqual([false, false]);
      });

      it('stores an event that the log has twice once, and moves over both', async () => {
        const owned = await ownOne();
        const event = newEvent();
        expect(await append([event], owned, { offsets: [0], upTo: 1, batchEvents: 1 })).toEqual([event.id]);
        expect(await append([event], owned, { offsets: [1], upTo: 2, batchEvents: 1 })).toEqual([]);
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 2, done: [] });
      });

      it('records the offsets of a part of a batch, and the next commit leaves them out', async () => {
        const owned = await ownOne();
        await append([newEvent()], owned, { offsets: [1], upTo: 2, batchEvents: 2 });
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 0, done: [1] });
        const again = [newEvent(), newEvent()];
        expect(await append(again, owned, { offsets: [0, 1], upTo: 2, batchEvents: 1 })).toEqual([
          again[0]!.id,
        ]);
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 2, done: [] });
      });

      it('keeps the offsets above the new position', async () => {
        const owned = await ownOne();
        await append([newEvent(), newEvent()], owned, { offsets: [1, 7], upTo: 9, batchEvents: 9 });
        await append([newEvent()], owned, { offsets: [0], upTo: 2, batchEvents: 1 });
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 2, done: [7] });
        expect(await append([newEvent()], owned, { offsets: [7], upTo: 9, batchEvents: 1 })).toEqual([]);
      });

      it('does not count a record that lost its idempotency key as stored', async () => {
        const owned = await ownOne();
        const withKey = (data: string) => newEvent({ idempotencyKey: 'k', data: Buffer.from(data) });
        await append([withKey('{}')], owned, { offsets: [0], upTo: 1, batchEvents: 1 });
        const others = [withKey('{"other":1}'), newEvent()];
        expect(await append(others, owned, { offsets: [1, 2], upTo: 3, batchEvents: 2 })).toEqual([
          others[1]!.id,
        ]);
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 1, done: [2] });
      });

      it('writes nothing for a process that has lost the partition', async () => {
        await addPartitions(1);
        const first = newId();
        const owned = (await renew(first))[0]!;
        await silence(first);
        const [taken] = await renew(newId());
        expect(taken).toMatchObject({ id: owned.id, epoch: String(Number(owned.epoch) + 1) });
        const event = newEvent();
        await expect(append([event], owned, { offsets: [0], upTo: 1, batchEvents: 1 })).rejects.toMatchObject(
          { failure: 'fenced' },
        );
        expect(await store.kafka.advance({ ...owned, position: '9', parked: [] })).toBe(false);
        expect(await isStored(event)).toBe(false);
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 0, done: [] });
      });
    });

    describe('divides the partitions', () => {
      it('evenly, and a process that stops or dies gives its own to the others', async () => {
        await addPartitions(4);
        const [a, b] = [newId(), newId()];
        expect(await renew(a)).toHaveLength(4);
        expect(await renew(b)).toHaveLength(0);
        expect(await releaseSurplus(a)).toBe(2);
        expect(await renew(b)).toHaveLength(2);
        await store.kafka.removeConsumer(a);
        expect(await renew(b)).toHaveLength(4);
        await silence(b);
        expect(await renew(a)).toHaveLength(4);
      });

      it('so that a partition that comes back has another epoch, and continues where the others ended', async () => {
        await addPartitions(1);
        const [a, b] = [newId(), newId()];
        const before = (await renew(a))[0]!;
        await silence(a);
        const between = (await renew(b))[0]!;
        await append([newEvent()], between, { offsets: [0], upTo: 1, batchEvents: 1 });
        await store.kafka.removeConsumer(b);
        const after = (await renew(a))[0]!;
        expect(after).toMatchObject({ id: before.id, position: '1' });
        expect(Number(after.epoch)).toBeGreaterThan(Number(between.epoch));
        await expect(
          append([newEvent()], before, { offsets: [0], upTo: 1, batchEvents: 1 }),
        ).rejects.toMatchObject({ failure: 'fenced' });
      });

      it('and a renewal that is slower than the lease keeps the partitions of its process', async () => {
        await addPartitions(2);
        expect(await renew(newId(), { leaseMs: 0 })).toHaveLength(2);
      });

      it("and those of a dead process are taken over after a step back of the store's clock", async () => {
        await addPartitions(2);
        const [dead, other] = [newId(), newId()];
        expect(await renew(dead)).toHaveLength(2);
        // It renewed before the clock stepped back.
        await store.ageKafkaConsumer(dead, -40 * 24 * 60 * MINUTE_MS);
        expect(await renew(other)).toHaveLength(0);
        await silence(dead);
        expect(await renew(other)).toHaveLength(2);
      });

      it('among the processes that read them: with different topics, none is unread', async () => {
        const [x, y] = ['x', 'y'];
        for (const topic of [x, y]) await addPartitions(2, { topic, id: topic });
        const [a, b, c] = [newId(), newId(), newId()];
        for (let n = 0; n < 3; n += 1) {
          await releaseSurplus(a, [x]);
          await releaseSurplus(b, [x, y]);
          await releaseSurplus(c, []);
        }
        const topicsOf = async (id: Uuid, topicIds: readonly string[]) =>
          (await renew(id, { topicIds })).map(({ topic, role }) => `${topic} ${role}`);
        expect(await topicsOf(a, [x])).toEqual(['x read']);
        expect(await topicsOf(b, [x, y])).toEqual(['x read', 'y read', 'y read']);
        expect(await topicsOf(c, [])).toEqual([]);
      });

      it('and keeps the position of a known one', async () => {
        await addPartitions(1, { position: '5' });
        await addPartitions(2, { position: '0' });
        expect((await renew(newId())).map(({ position }) => position)).toEqual(['5', '0']);
        expect(await store.kafka.readPositions('orders')).toEqual(
          new Map([
            [0, 5n],
            [1, 0n],
          ]),
        );
        expect(await store.kafka.readPositions('other')).toEqual(new Map());
      });

      it('and knows the topics that were read in a cluster, and those that did not exist yet', async () => {
        await addPartitions(2);
        await store.kafka.recordAwaitedTopics(['later', 'other']);
        await store.kafka.recordAwaitedTopics(['later']);
        expect(await store.kafka.listKnownTopics(CLUSTER)).toEqual(new Set(['orders', 'later', 'other']));
        expect(await store.kafka.listKnownTopics('another')).toEqual(new Set(['later', 'other']));
      });
    });

    describe('sets records aside', () => {
      const parked = (offset: number, parts: Partial<ParkedRecord> = {}): ParkedRecord => ({
        id: newEventId(),
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
      const readWaiting = (id: number, { max = 9, exceptTenants = [] as readonly string[] } = {}) =>
        store.kafka.readWaiting(id, { max, exceptTenants });
      const countWaiting = async (id: number) => Object.fromEntries(await store.kafka.countWaiting(id));

      it('once, by the commit that moves the position, and reads them as they were', async () => {
        const owned = await ownOne();
        const records = [
          parked(0),
          parked(1, { tenant: 'other' }),
          parked(2, { state: 'rejected', reason: 'odd' }),
        ];
        const advance = { ...owned, position: '3', parked: records, lost: '2' };
        expect(await store.kafka.advance(advance)).toBe(true);
        expect(await store.kafka.advance({ ...advance, parked: [parked(0)] })).toBe(true);
        // The producer has written it twice.
        expect(await store.kafka.advance({ ...advance, parked: [{ ...records[0]!, offset: '7' }] })).toBe(
          true,
        );
        expect(await store.kafkaPosition(owned.id)).toEqual({ position: 3, done: [] });
        expect(await readWaiting(owned.id)).toMatchObject(records.slice(0, 2));
        expect(await readWaiting(owned.id, { exceptTenants: ['acme'] })).toMatchObject([records[1]!]);
        expect(await countWaiting(owned.id)).toEqual({ acme: 1, other: 1 });
        const [first] = await readWaiting(owned.id, { max: 1 });
        await store.kafka.setWaitingTenants([{ seq: first!.seq, tenant: 'other' }]);
        expect(await countWaiting(owned.id)).toEqual({ other: 2 });
      });

      it('and tells the owner how many wait, and how many are rejected', async () => {
        const owned = await ownOne();
        const states = ['waiting', 'rejected', 'waiting'] as const;
        const records = states.map((state, offset) => parked(offset, { state }));
        await store.kafka.advance({ ...owned, position: '3', parked: records });
        const [first] = await readWaiting(owned.id);
        await store.kafka.rejectWaiting([{ seq: first!.seq, reason: 'odd' }]);
        expect(await store.kafka.countRejected(owned.id, 9)).toBe(2);
        expect(await store.kafka.countRejected(owned.id, 1)).toBe(1);
        expect(await countWaiting(owned.id)).toEqual({ acme: 1 });
      });

      it('until the commit that stores them deletes them', async () => {
        const owned = await ownOne();
        await store.kafka.advance({ ...owned, position: '1', parked: [parked(0)] });
        const [row] = await readWaiting(owned.id);
        const event = newEvent({ id: row!.id });
        const options = await appendOptions(store, {
          mayBeStored: true,
          outboxSeqs: [row!.seq],
          fromParkedRecords: true,
        });
        expect(await store.eventStore.append([event], options)).toMatchObject({
          written: new Set([row!.id]),
        });
        expect(await store.eventStore.append([event], options)).toMatchObject({ written: new Set() });
        expect(await readWaiting(owned.id)).toEqual([]);
        expect(await isStored(event)).toBe(true);
      });

      it('and gives those of a deleted topic to any process, until none waits', async () => {
        const owned = await ownOne();
        await store.kafka.advance({ ...owned, position: '1', parked: [parked(0)] });
        const [old, created, removed] = [topicId, newId(), newId()];
        await addPartitions(1, { id: created });
        const [a, b] = [newId(), newId()];
        // The process of `ownOne`.
        await store.ageKafkaConsumer(null, LEASE_MS + 1_000);
        const rolesOf = async (id: Uuid, topicIds: readonly string[]) =>
          (await renew(id, { topicIds })).map((each) => `${each.topicId} ${each.role}`);
        expect(await rolesOf(a, [created])).toEqual([`${old} drain`, `${created} read`]);
        // A process that reads the topic takes precedence.
        expect(await rolesOf(b, [old])).toEqual([]);
        expect(await rolesOf(a, [created])).toEqual([`${old} release`, `${created} read`]);
        await store.kafka.removeConsumer(b);
        expect(await rolesOf(a, [created])).toEqual([`${old} drain`, `${created} read`]);
        const [row] = await readWaiting(owned.id);
        await store.kafka.deleteWaiting([row!.seq]);
        expect(await rolesOf(a, [created])).toEqual([`${old} release`, `${created} read`]);
        expect(await rolesOf(a, [removed])).toEqual([`${old} release`, `${created} release`]);
      });
    });

    it('throws a StoreError if the connection is lost, and works again afterwards', async () => {
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.kafka.readPositions('orders')).rejects.toMatchObject({
        name: 'StoreError',
      });
      expect((await store.unreliable.kafka.readPositions('orders')).size).toBe(0);
    });
  });
}
