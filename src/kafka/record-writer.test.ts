import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { readEventFromParts, readJsonFields } from '../ingest/index.ts';
import type { Advance, KafkaStore } from '../ports/kafka-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { AcceptTopicReader } from './accept-topic-reader.ts';
import { RecordMapping } from './mapping.ts';
import { PartitionState } from './partition-state.ts';
import type { KafkaRecord } from './record.ts';
import { judge, RecordWriter } from './record-writer.ts';

const recordAt = (offset: number, value: string): KafkaRecord => ({
  topic: 'orders',
  partition: 0,
  offset: BigInt(offset),
  timestampMs: 0,
  key: null,
  value: Buffer.from(value),
  headers: [],
});

/** A writer whose sink answers with `answer`, and what it did. */
function newWriter({
  answer = () => ({}),
  limited = [],
  maxWaiting = 100,
  maxRejected = 100,
  rejected = () => 0,
  refuse = () => null,
  acceptTopic = null,
}: {
  answer?: (event: CommittedEvent, attempt: number) => object | Error;
  limited?: readonly string[];
  maxWaiting?: number;
  maxRejected?: number;
  /** How many rejected records the store has. */
  rejected?: () => number;
  acceptTopic?: AcceptTopicReader | null;
  /** The error of the store for an attempt to move the position. Null: none. */
  refuse?: (advance: Advance) => Error | null;
} = {}) {
  const advances: Advance[] = [];
  const batches: CommittedEvent[][] = [];
  const stored: number[] = [];
  const mapping = new RecordMapping(
    { type: [], tenant: ['$.tenant'], idempotencyKey: [], channels: [], timestamp: [], data: [] },
    (json) => readJsonFields(json, 64),
  );
  const writer = new RecordWriter({
    store: {
      async advance(advance: Advance) {
        const error = refuse(advance);
        if (error !== null) throw error;
        advances.push(advance);
        return true;
      },
      countRejected: async () => rejected(),
    } as Partial<KafkaStore> as KafkaStore,
    sink: {
      async accept(events) {
        batches.push([...events]);
        return events.map((event) => answer(event, batches.length));
      },
    },
    mapping,
    readEvent: ({ fields, data }) =>
      readEventFromParts(
        fields,
        data,
        { maxEventBytes: 1000, maxNesting: 64 },
        { keyTenant: null, idempotencyKey: null, isReservedHeader: () => false },
      ),
    acceptTopic,
    tenantRates: { take: (tenant) => (limited.includes(tenant) ? 1 : 0) },
    clock: { ...systemClock, after: (_ms, callback) => systemClock.after(0, callback) },
    batchRows: 3,
    batchBytes: 1000,
    maxWaiting,
    maxRejected,
    onRejected() {},
    onStored: (_topic, count) => stored.push(count),
    onProblem() {},
  });
  const state = new PartitionState({
    id: 1,
    topic: 'orders',
    topicId: 't',
    partition: 0,
    epoch: '5',
    role: 'read',
    position: '0',
    done: [],
    waiting: 0,
  });
  const offsetsOf = (batch: readonly CommittedEvent[]) =>
    batch.map(({ record }) => (record?.kind === 'partition' ? Number(record.offset) : -1));
  return { writer, state, advances, batches: () => batches.map(offsetsOf), events: batches, stored };
}

const records = (count: number): KafkaRecord[] =>
  Array.from({ length: count }, (_, n) => recordAt(n, `{"n":${n}}`));

test('SCL-2: the commit of a batch moves the position behind its last record', async () => {
  const { writer, state, advances, events } = newWriter();
  await writer.write(state, records(4), 9n);
  expect(events.map((batch) => batch[0]!.record)).toMatchObject([
    { batch: { partitionId: 1, epoch: '5', upTo: '3', events: 3 }, offset: '0' },
    { batch: { upTo: '9', events: 1 }, offset: '3' },
  ]);
  expect(advances).toEqual([]);
  expect(state.position).toBe(9n);
});

test('SCL-2: records that an earlier owner stored are left out', async () => {
  const { writer, state, batches } = newWriter();
  state.done = new Set(['1']);
  await writer.write(state, records(3), 3n);
  expect(batches()).toEqual([[0, 2]]);
});

test('SCL-2: a record that cannot become an event is set aside by the commit that moves the position', async () => {
  const { writer, state, advances, events } = newWriter();
  await writer.write(state, [recordAt(0, '{}'), recordAt(1, '1,"tenant":"other"'), recordAt(2, '{}')], 3n);
  // The events alone must not move the position over the record that is not set aside yet.
  expect(events[0]![0]!.record).toMatchObject({ batch: { events: -1 } });
  expect(advances).toMatchObject([
    { position: '3', parked: [{ offset: '1', state: 'rejected', reason: expect.stringContaining('JSON') }] },
  ]);
});

test('SCL-2: a record that the database refuses is set aside with its tenant', async () => {
  const answer = ({ data }: CommittedEvent) =>
    data.includes('bad') ? new Problem('invalid', 'no such value') : {};
  const { writer, state, advances } = newWriter({ answer });
  await writer.write(state, [recordAt(0, '{}'), recordAt(1, '{"tenant":"acme","bad":1}')], 2n);
  expect(advances).toMatchObject([
    { position: '2', parked: [{ offset: '1', tenant: 'acme', reason: 'no such value' }] },
  ]);
});

const OUTAGE = new Problem('unavailable', 'away', { cause: new StoreError('unavailable', 'away') });

test('SCL-2: after an outage only records that were not stored are retried', async () => {
  const answer = ({ data }: CommittedEvent, attempt: number) =>
    attempt === 1 && data.includes('1') ? OUTAGE : {};
  const { writer, state, batches, advances } = newWriter({ answer });
  await writer.write(state, records(3), 3n);
  expect(batches()).toEqual([[0, 1, 2], [1]]);
  expect(advances).toMatchObject([{ position: '3', parked: [] }]);
});

test('SCL-2: records of a tenant whose data is being deleted are not counted as stored', async () => {
  const answer = ({ data }: CommittedEvent) =>
    data.includes('1') ? new Problem('conflict', 'being deleted') : {};
  const { writer, state, stored } = newWriter({ answer });
  await writer.write(state, records(3), 3n);
  expect(stored).toEqual([2]);
});

test('SCL-2: a process stops writing at once for a partition that another process took', async () => {
  const { writer, state, batches, advances } = newWriter({ answer: () => new StoreError('fenced', 'taken') });
  await writer.write(state, records(9), 9n);
  expect(batches()).toEqual([[0, 1, 2]]);
  expect(advances).toEqual([]);
  expect(state).toMatchObject({ isLost: true, position: 0n });
});

test('SCL-2: records of a tenant over its limit wait, and its later ones behind them', async () => {
  const limited: string[] = ['busy'];
  const { writer, state, advances, batches } = newWriter({ limited });
  const [first, second] = [recordAt(0, '{"tenant":"busy"}'), recordAt(1, '{"tenant":"calm"}')];
  await writer.write(state, [first, second], 2n);
  limited.pop();
  await writer.write(state, [recordAt(2, '{"tenant":"busy"}')], 3n);
  expect(batches()).toEqual([[1]]);
  expect(advances.flatMap(({ parked }) => parked)).toMatchObject([
    { offset: '0', state: 'waiting', tenant: 'busy' },
    { offset: '2', state: 'waiting', tenant: 'busy' },
  ]);
  expect(state.waiting).toBe(2);
});

test('SCL-2: when too many records wait, the partition pauses before the next one', async () => {
  const { writer, state, advances } = newWriter({ limited: ['default'], maxWaiting: 2 });
  await writer.write(state, records(5), 5n);
  expect(state).toMatchObject({ pausedReason: 'overflow_full', position: 2n, waiting: 2 });
  expect(advances.at(-1)).toMatchObject({ position: '2' });
  expect(writer.hasRoom(state)).toBe(false);
});

test('SCL-2: an error that may be temporary rejects a record after five tries, an outage never', () => {
  expect(judge(OUTAGE, 4)).toEqual({ kind: 'retry', failures: 4 });
  expect(judge(new Error('odd'), 3)).toEqual({ kind: 'retry', failures: 4 });
  expect(judge(new Error('odd'), 4)).toEqual({ kind: 'rejected', reason: 'odd' });
});

test('SCL-2: a rejected record that the store refuses is set aside without what it may refuse', async () => {
  const { writer, state, advances } = newWriter({
    refuse: ({ parked }) =>
      parked.some(({ recordedAt }) => recordedAt > 1e15) ? new StoreError('other', 'out of range') : null,
  });
  await writer.write(state, [{ ...recordAt(0, 'no json'), timestampMs: 1e18 }], 1n);
  expect(advances).toMatchObject([{ position: '1', parked: [{ recordedAt: 0, state: 'rejected' }] }]);
  expect(advances[0]!.parked[0]!.value?.toString()).toBe('no json');
  expect(state).toMatchObject({ position: 1n, pausedReason: null });
});

test('SCL-2: a partition whose records the store always refuses pauses, and is not retried forever', async () => {
  let isBroken = true;
  const { writer, state, batches } = newWriter({
    refuse: () => (isBroken ? new StoreError('invalid_row', 'no') : null),
  });
  const both = [recordAt(0, 'no json'), recordAt(1, '{}')];
  await expect(writer.write(state, both, 2n)).rejects.toThrow('no');
  expect(state).toMatchObject({ position: 0n, pausedReason: 'records_refused' });
  isBroken = false;
  await writer.write(state, both, 2n);
  expect(state).toMatchObject({ position: 2n, pausedReason: null });
  // The second record is not stored again.
  expect(batches()).toEqual([[1]]);
});

test('SCL-2: an outage does not reduce the records that are set aside', async () => {
  let outages = 20;
  const { writer, state, advances } = newWriter({
    refuse: () => (outages-- > 0 ? new StoreError('unavailable', 'away') : null),
  });
  await writer.write(state, [{ ...recordAt(0, 'no json'), timestampMs: 7 }], 1n);
  expect(advances).toMatchObject([{ parked: [{ recordedAt: 7 }] }]);
});

test('SCL-2: when too many records are rejected, the partition pauses before the next one', async () => {
  let rejected = 1;
  const { writer, state, advances, batches } = newWriter({ maxRejected: 3, rejected: () => rejected });
  const bad = [0, 1, 2, 3].map((n) => recordAt(n, 'no json'));
  await writer.write(state, bad, 4n);
  expect(state).toMatchObject({ pausedReason: 'rejected_full', position: 2n });
  expect(advances.flatMap(({ parked }) => parked)).toHaveLength(2);
  rejected = 3;
  // Valid records are still stored.
  await writer.write(state, [recordAt(2, '{}'), ...bad.slice(3)], 4n);
  expect(batches()).toEqual([[2]]);
  expect(state).toMatchObject({ pausedReason: 'rejected_full', position: 3n });
  // An operator has discarded them.
  rejected = 0;
  await writer.write(state, bad.slice(3), 4n);
  expect(state).toMatchObject({ pausedReason: null, position: 4n });
});

test('SCL-2: rejected records never pause the accept topic: own ones are kept, and those of other deployments are left out', async () => {
  const acceptTopic = new AcceptTopicReader('orders', 'own', { readDeletedTenants: async () => new Map() });
  const { writer, state, advances } = newWriter({ maxRejected: 2, rejected: () => 2, acceptTopic });
  // A later release of this deployment wrote the first one.
  const records = ['own', 'other', 'other', 'own'].map((deployment, n) => ({
    ...recordAt(n, '{}'),
    headers: [['posthorn', Buffer.from(JSON.stringify({ v: 2, deployment }))]] as const,
  }));
  await writer.write(state, records, 4n);
  expect(state).toMatchObject({ pausedReason: null, position: 4n });
  expect(advances.flatMap(({ parked }) => parked.map(({ offset }) => offset))).toEqual(['0', '3']);
});

test('SCL-2: records of the accept topic are marked as answered, so that the time in their ids is no reason to reject them', async () => {
  const acceptTopic = new AcceptTopicReader('orders', 'own', { readDeletedTenants: async () => new Map() });
  const { writer, state, events } = newWriter({ acceptTopic });
  const event = {
    id: newEventId(Date.now()),
    ...{ tenant: 'acme', type: 'a.b', idempotencyKey: null, schemaVersion: null, channels: [] },
    ...{ endpointIds: null, deliverAt: null, headers: null, closedTenantsReadAt: null },
  };
  const header = Buffer.from(JSON.stringify({ v: 1, deployment: 'own', ...event }));
  await writer.write(state, [{ ...recordAt(0, '{}'), headers: [['posthorn', header]] }], 1n);
  expect(events).toMatchObject([[{ id: event.id, isFromAcceptLog: true }]]);
});
