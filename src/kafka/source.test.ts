import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { KafkaStore, OwnedPartition, PartitionReport } from '../ports/kafka-store.ts';
import type { KafkaClient } from './client.ts';
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
  owned: Partial<OwnedPartition>;
  topicExists?: boolean;
  errorCode?: () => number | null;
}) {
  const reports: PartitionReport[] = [];
  const released: number[] = [];
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
    async fetch() {
      fetches += 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
      const answer = { topicId: 't', partition: 0, logStart: 0n, logEnd: 0n, records: [], nextOffset: 0n };
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
      return released.length > 0 ? [] : [{ ...known, done: [], waiting: 0, role: 'read', ...owned }];
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
  return { reports, released, fetches: () => fetches, drains: () => drains };
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
