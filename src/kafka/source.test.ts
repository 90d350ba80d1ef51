import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { KafkaStore, OwnedPartition, PartitionReport } from '../ports/kafka-store.ts';
import type { FetchPosition, KafkaClient } from './client.ts';
import type { RecordWriter } from './record-writer.ts';
import { KafkaSource } from './source.ts';
import type { WaitingRecords } from './waiting-records.ts';

const NOT_LEADER = 6;

/** A source that owns one partition, and what it did. */
function startSource({
  owned,
  topicExists = true,
  errorCode = () => null,
}: {
  owned: Partial<OwnedPartition> | (() => Partial<OwnedPartition> | null);
  topicExists?: boolean;
  errorCode?: () => number | null;
}) {
  const reports: PartitionReport[] = [];
  const released: number[] = [];
  const positions: bigint[] = [];
  let fetches = 0;
  let drains = 0;
  const client: Partial<KafkaClient> = {
    describe: async () => ({
      cluster: 'c',
      topics: topicExists ? [{ name: 'orders', id: 't', partitions: 1 }] : [],
      missing: topicExists ? [] : ['orders'],
      failed: [],
    }),
    listOffsets: async () => [0n],
    leaderOf: () => 1,
    async fetch(_broker: number, [first]: readonly FetchPosition[]) {
      fetches += 1;
      positions.push(first!.offset);
      await new Promise((resolve) => setTimeout(resolve, 5));
      const nextOffset = first!.offset;
      const answer = { topicId: 't', partition: 0, logStart: 0n, logEnd: 0n, records: [], nextOffset };
      return [{ ...answer, errorCode: errorCode(), isTooLarge: false }];
    },
    close: async () => {},
  };
  const store: Partial<KafkaStore> = {
    addPartitions: async () => {},
    recordAwaitedTopics: async () => {},
    async renewLease(_lease, each) {
      reports.push(...each);
      const known = { id: 1, topic: 'orders', topicId: 't', partition: 0, epoch: '1', position: '0' };
      const given = typeof owned === 'function' ? owned() : owned;
      if (released.length > 0 || given === null) return [];
      return [{ ...known, done: [], waiting: 0, role: 'read', ...given }];
    },
    releasePartitions: async (_id, ids) => {
      released.push(...ids);
    },
    removeConsumer: async () => {},
  };
  const source = new KafkaSource({
    id: newId(0),
    name: 'test',
    store: store as KafkaStore,
    connect: async () => client as KafkaClient,
    writer: { stop() {}, hasRoom: () => true } as Partial<RecordWriter> as RecordWriter,
    waitingRecords: {
      async drain(state) {
        drains += 1;
        state.drainAt = systemClock.monotonic() + 10;
      },
    } as Partial<WaitingRecords> as WaitingRecords,
    clock: systemClock,
    topics: ['orders'],
    start: 'earliest',
    renewMs: 5,
    leaseMs: 1000,
    onRecordsLost() {},
    onProblem() {},
  });
  onTestFinished(() => source.stop());
  source.start();
  return { reports, released, positions, fetches: () => fetches, drains: () => drains };
}

test('SCL-2: a fetch that is answered with an error does not count as answered', async () => {
  let code: number | null = NOT_LEADER;
  const { reports, fetches } = startSource({ owned: {}, errorCode: () => code });
  await vi.waitFor(() => expect(fetches()).toBeGreaterThan(1), 5000);
  expect(reports.map(({ hasAnswered }) => hasAnswered)).not.toContain(true);
  code = null;
  await vi.waitFor(() => expect(reports.at(-1)).toMatchObject({ hasAnswered: true }), 5000);
});

test('SCL-2: waiting records of a topic that was deleted are stored, and the partition is not fetched', async () => {
  const { fetches, drains } = startSource({ owned: { role: 'drain', waiting: 1 }, topicExists: false });
  await vi.waitFor(() => expect(drains()).toBeGreaterThan(1), 5000);
  expect(fetches()).toBe(0);
});

test('SCL-2: a partition that another process should have is released', async () => {
  const { released, fetches } = startSource({ owned: { role: 'release' } });
  await vi.waitFor(() => expect(released).toEqual([1]), 5000);
  expect(fetches()).toBe(0);
});

test('SCL-2: a partition that comes back is read where the others ended, not where this process was', async () => {
  let owned: Partial<OwnedPartition> | null = { epoch: '1', position: '7' };
  const { positions, fetches } = startSource({ owned: () => owned });
  await vi.waitFor(() => expect(positions).toContain(7n), 5000);
  owned = null;
  await vi.waitFor(async () => {
    const before = fetches();
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(fetches()).toBe(before);
  }, 5000);
  positions.length = 0;
  owned = { epoch: '3', position: '20' };
  await vi.waitFor(() => expect(fetches() > 0 && positions.length > 3).toBe(true), 5000);
  expect(new Set(positions)).toEqual(new Set([20n]));
  // The store's position lags behind that of the process, which keeps its own while it owns the partition.
  owned = { epoch: '3', position: '12' };
  positions.length = 0;
  await vi.waitFor(() => expect(positions.length).toBeGreaterThan(3), 5000);
  expect(new Set(positions)).toEqual(new Set([20n]));
});
