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
const dueAt = (item: PendingEvent) => toRecord(item, [endpoint], null, NOW, () => 0).deliveries[0]!.dueAt;

test('the age of a committed event that waited for more than a minute begins when it is accepted', () => {
  const committed = { outboxSeq: '1', lostKey: null, outcomeUnknown: false };
  expect(dueAt(pendingSince(NOW - 61_000, committed))).toBe(NOW);
  expect(dueAt(pendingSince(NOW - 59_000, committed))).toBeNull();
  expect(dueAt(pendingSince(NOW - 61_000, null))).toBeNull();
});
