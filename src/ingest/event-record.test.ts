import { expect, test } from 'vitest';
import type { Endpoint } from '../domain/endpoint.ts';
import { firstIdAt } from '../domain/ids.ts';
import { toRecord } from './event-record.ts';
import type { PendingEvent } from './pending-event.ts';

const NOW = Date.UTC(2027, 0, 31);
const endpoint = {
  id: '018c251e-0000-7abc-8abc-000000000001',
  enabled: true,
  ordering: 'none',
  debounce: null,
  retry: { kind: 'schedule', schedule: [0], jitter: 'none' },
} as unknown as Endpoint;

function pendingSince(ms: number, committed: PendingEvent['committed']): PendingEvent {
  const event = {
    tenant: 'acme',
    type: 'a.b',
    data: Buffer.from('1'),
    idempotencyKey: null,
    schemaVersion: null,
    channels: [],
    endpointIds: null,
    deliverAt: null,
    headers: null,
  };
  const id = `${firstIdAt(ms).slice(0, 14)}7abc-8abc-012345670000`;
  return { event, id, fingerprint: null, receivedAt: 0, committed, resolve() {}, reject() {} };
}
const context = { unmatchedReason: null, now: NOW, random: () => 0, deliveriesPerCommit: 4 };
const dueAt = (item: PendingEvent) => toRecord(item, [endpoint], context).deliveries[0]!.dueAt;

test('the age of a committed event that waited for more than a minute begins when it is accepted', () => {
  const committed = { outboxSeq: '1', lostKey: null, isOutcomeUnknown: false };
  expect(dueAt(pendingSince(NOW - 61_000, committed))).toBe(NOW);
  expect(dueAt(pendingSince(NOW - 59_000, committed))).toBeNull();
  expect(dueAt(pendingSince(NOW - 61_000, null))).toBeNull();
});

test('a large fan-out is sliced: FIFO endpoints come first, disabled ones last', () => {
  const endpoints = Array.from({ length: 11 }, (_, n) => ({
    ...endpoint,
    id: `0190aaaa-0000-7000-8000-${String(n).padStart(12, '0')}`,
    enabled: n < 9,
    ordering: n > 3 ? ('fifo' as const) : ('none' as const),
  }));
  const { deliveries, skipped, unwritten, options } = toRecord(pendingSince(NOW, null), endpoints, context);
  const numberOf = (id: string) => Number(id.slice(-12));
  expect(deliveries.map(({ endpointId }) => numberOf(endpointId))).toEqual([4, 5, 6, 7]);
  expect(skipped).toEqual([]);
  expect(options).toEqual({ skipped: 2 });
  expect(
    unwritten?.slices.map(({ endpointIds, hasFifo, wasDisabled }) => [
      endpointIds.map(numberOf),
      hasFifo,
      wasDisabled,
    ]),
  ).toEqual([
    [[8], true, false],
    [[0, 1], false, false],
    [[2, 3], false, false],
    [[9, 10], false, true],
  ]);
  expect(toRecord(pendingSince(NOW, null), endpoints.slice(0, 4), context).unwritten).toBeUndefined();
});

test('without FIFO endpoints the first commit of a large fan-out has no more deliveries than a slice', () => {
  const endpoints = Array.from({ length: 5 }, (_, n) => ({ ...endpoint, id: `endpoint ${n}` }));
  const { deliveries, unwritten } = toRecord(pendingSince(NOW, null), endpoints, context);
  expect(deliveries.map(({ endpointId }) => endpointId)).toEqual(['endpoint 0', 'endpoint 1']);
  expect(unwritten?.slices.map(({ endpointIds }) => endpointIds)).toEqual([
    ['endpoint 2', 'endpoint 3'],
    ['endpoint 4'],
  ]);
});
