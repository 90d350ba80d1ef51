import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { readEventFromParts, readJsonFields } from '../ingest/index.ts';
import type { KafkaStore, StoredParkedRecord } from '../ports/kafka-store.ts';
import { RecordMapping } from './mapping.ts';
import { PartitionState } from './partition-state.ts';
import { WaitingRecords } from './waiting-records.ts';

const waiting = (
  seq: number,
  tenant: string | null,
  value = `{"tenant":"${tenant}"}`,
): StoredParkedRecord => ({
  seq: String(seq),
  id: newEventId(Date.now()),
  offset: String(seq),
  state: 'waiting',
  tenant,
  key: null,
  value: Buffer.from(value),
  headers: [],
  recordedAt: 0,
  reason: null,
});

const partition = (id: number): PartitionState =>
  new PartitionState({
    id,
    topic: 'orders',
    topicId: 't',
    partition: id,
    epoch: '1',
    role: 'read',
    position: '0',
    done: [],
    waiting: 1,
  });

/** Waiting records of partitions, and what became of them. */
function newWaiting({
  rows,
  answer = () => ({}),
  limited = [],
}: {
  rows: Record<number, StoredParkedRecord[]>;
  answer?: (event: CommittedEvent) => object | Error;
  limited?: readonly string[];
}) {
  const stored: string[] = [];
  const rejected: { offset: string; reason: string }[] = [];
  const dropped: string[] = [];
  let storedCount = 0;
  const remove = (seq: string): void => {
    for (const id of Object.keys(rows)) rows[Number(id)] = rows[Number(id)]!.filter((row) => row.seq !== seq);
  };
  const records = new WaitingRecords({
    store: {
      async readWaiting(id, { max, exceptTenants }) {
        return rows[id]!.filter(({ tenant }) => !exceptTenants.includes(tenant!)).slice(0, max);
      },
      async setWaitingTenants(held) {
        for (const { seq, tenant } of held)
          for (const id of Object.keys(rows))
            rows[Number(id)] = rows[Number(id)]!.map((row) => (row.seq === seq ? { ...row, tenant } : row));
      },
      async rejectWaiting(refused) {
        for (const { seq } of refused) remove(seq);
      },
      async deleteWaiting(seqs) {
        for (const seq of seqs) remove(seq);
        dropped.push(...seqs);
      },
      async countWaiting(id) {
        return new Map(rows[id]!.map(({ tenant }) => [tenant, 1]));
      },
    } as Partial<KafkaStore> as KafkaStore,
    sink: {
      async accept(events) {
        return events.map((event) => {
          const result = answer(event);
          if (result instanceof Error) return result;
          stored.push(event.outboxSeq!);
          remove(event.outboxSeq!);
          return result;
        });
      },
    },
    mapping: new RecordMapping(
      { type: [], tenant: ['$.tenant'], idempotencyKey: [], channels: [], timestamp: [], data: [] },
      (json) => readJsonFields(json, 64),
    ),
    readEvent: ({ fields, data }) =>
      readEventFromParts(
        fields,
        data,
        { maxEventBytes: 1000, maxNesting: 64 },
        { keyTenant: null, idempotencyKey: null, isReservedHeader: () => false },
      ),
    tenantRates: { take: (tenant) => (limited.includes(tenant) ? 1 : 0) },
    clock: systemClock,
    batchRows: 2,
    onRejected: ({ offset }, reason) => rejected.push({ offset, reason }),
    onStored: (_topic, count) => {
      storedCount += count;
    },
  });
  return { records, stored, rejected, dropped, storedCount: () => storedCount };
}

test('SCL-2: a tenant over its limit does not hold up the waiting records of others', async () => {
  const rows = { 1: [waiting(1, 'busy'), waiting(2, 'busy'), waiting(3, 'busy'), waiting(4, 'calm')] };
  const { records, stored } = newWaiting({ rows, limited: ['busy'] });
  await records.drain(partition(1));
  expect(stored).toEqual(['4']);
});

test('SCL-2: retried records whose tenant was unknown do not hold up others when their tenant is over its limit', async () => {
  const unknown = [1, 2, 3, 4, 5].map((seq) => waiting(seq, null, '{"tenant":"busy"}'));
  const { records, stored } = newWaiting({
    rows: { 1: [...unknown, waiting(6, 'calm')] },
    limited: ['busy'],
  });
  await records.drain(partition(1));
  expect(stored).toEqual(['6']);
});

test('SCL-2: a tenant with too many unwritten deliveries keeps its records, in order, however often they are tried', async () => {
  const rows = { 1: [waiting(1, 'busy'), waiting(2, 'calm'), waiting(3, 'busy'), waiting(4, 'calm')] };
  let isFull = true;
  const answer = ({ tenant }: CommittedEvent) =>
    isFull && tenant === 'busy' ? new Problem('rate_limited', 'too many') : {};
  const { records, stored, rejected } = newWaiting({ rows, answer });
  const state = partition(1);
  for (let n = 0; n < 6; n++) await records.drain(state);
  expect({ stored, rejected }).toEqual({ stored: ['2', '4'], rejected: [] });
  isFull = false;
  await records.drain(state);
  expect(stored).toEqual(['2', '4', '1', '3']);
});

test('SCL-2: the failures of a record are counted while other partitions have records that wait', async () => {
  const rows = { 1: [waiting(1, 'a')], 2: [waiting(2, 'b')] };
  const { records, rejected } = newWaiting({ rows, answer: () => new Error('odd') });
  const [one, two] = [partition(1), partition(2)];
  for (let n = 0; n < 5; n++) for (const state of [one, two]) await records.drain(state);
  expect(rejected).toEqual([
    { offset: '1', reason: 'odd' },
    { offset: '2', reason: 'odd' },
  ]);
});

test('SCL-2: a waiting record that cannot become an event is reported as rejected', async () => {
  const { records, rejected } = newWaiting({ rows: { 1: [waiting(7, 'a', 'no json\0')] } });
  await records.drain(partition(1));
  expect(rejected).toMatchObject([{ offset: '7', reason: expect.not.stringContaining('\0') }]);
});

test('SCL-2: a waiting record of a tenant whose data is being deleted is dropped and not counted as stored', async () => {
  const answer = () => new Problem('conflict', 'being deleted');
  const { records, dropped, storedCount } = newWaiting({ rows: { 1: [waiting(1, 'a')] }, answer });
  await records.drain(partition(1));
  expect({ dropped, stored: storedCount() }).toEqual({ dropped: ['1'], stored: 0 });
});
