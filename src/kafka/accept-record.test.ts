import { expect, test } from 'vitest';
import { newEventId, newId } from '../domain/ids.ts';
import type { LoggedEvent } from '../ports/event-log.ts';
import { decodeEvent, encodeEvent, identifyEvent } from './accept-record.ts';
import { AcceptTopicReader } from './accept-topic-reader.ts';
import type { KafkaRecord } from './record.ts';

const newEvent = (changes: Partial<LoggedEvent> = {}): LoggedEvent => ({
  id: newEventId(Date.now()),
  tenant: 'acme',
  type: 'order.paid',
  data: Buffer.from('{"a" :1.0}'),
  idempotencyKey: 'ü',
  schemaVersion: 'v1',
  channels: ['eu'],
  endpointIds: [newId(0)],
  deliverAt: 1_800_000_000_000,
  headers: { 'x-a': 'b' },
  closedTenantsReadAt: 1_790_000_000_000,
  ...changes,
});

const toRecord = (event: LoggedEvent, deployment = 'd'): KafkaRecord => {
  const { key, value, headers } = encodeEvent(event, deployment);
  const named = [...headers].map(([name, text]) => [String(name), text] as const);
  return { topic: 't', partition: 0, offset: 0n, timestampMs: 0, key, value, headers: named };
};

test('an event survives the topic byte for byte', () => {
  const event = newEvent();
  expect(decodeEvent(toRecord(event), 'd')).toEqual(event);
  const plain = newEvent({
    idempotencyKey: null,
    schemaVersion: null,
    channels: [],
    endpointIds: null,
    deliverAt: null,
    headers: null,
    closedTenantsReadAt: null,
  });
  expect(decodeEvent(toRecord(plain), 'd')).toEqual(plain);
});

test('a record of another deployment, or that Posthorn did not write, is refused', () => {
  expect(() => decodeEvent(toRecord(newEvent(), 'other'), 'd')).toThrow('another database');
  for (const changes of [
    { tenant: 'a","b' },
    { type: '"} injected' },
    { id: 'x' },
    { channels: [1] },
    { endpointIds: ['x'] },
    { deliverAt: 'soon' },
    { headers: { a: 1 } },
    { idempotencyKey: 1 },
    { closedTenantsReadAt: 'today' },
  ])
    expect(() => decodeEvent(toRecord(newEvent(changes as never)), 'd')).toThrow('not written by Posthorn');
  const record = toRecord(newEvent());
  expect(() => decodeEvent({ ...record, headers: [] }, 'd')).toThrow('not written by Posthorn');
  expect(() => decodeEvent({ ...record, headers: [['posthorn', Buffer.from('{')]] }, 'd')).toThrow(
    'not written',
  );
  expect(() => decodeEvent({ ...record, value: null }, 'd')).toThrow('not written by Posthorn');
  expect(identifyEvent({ ...record, headers: [] })).toBeNull();
});

const DELETED_AT = Date.UTC(2026, 0, 2);
const reader = new AcceptTopicReader('t', 'd', {
  readDeletedTenants: async () => new Map([['gone', DELETED_AT]]),
});
/** A record of the deleted tenant. `brokerMs`, `readMs`: relative to the end of the deletion. */
const recordOfDeleted = (brokerMs: number, readMs: number | null, idMs = 0): KafkaRecord => ({
  ...toRecord(
    newEvent({
      tenant: 'gone',
      id: newEventId(DELETED_AT + idMs),
      closedTenantsReadAt: readMs === null ? null : DELETED_AT + readMs,
    }),
  ),
  timestampMs: DELETED_AT + brokerMs,
});

test('records that were written twice are left out, and those of unknown writers are not', async () => {
  const twice = toRecord(newEvent());
  const foreign = { ...twice, headers: [] };
  const selected = await reader.select([twice, { ...twice, offset: 1n }, foreign]);
  expect(selected).toEqual([twice, foreign]);
});

test('records from before the end of the deletion of their tenant are left out, whatever the time in their ids', async () => {
  const HOUR_MS = 3_600_000;
  // A node with a clock that is ahead wrote the second one.
  const old = [recordOfDeleted(-1, -1), recordOfDeleted(-1, null, HOUR_MS)];
  // The tenant was created again. The clock of the node, or that of the broker, is behind.
  const recreated = [recordOfDeleted(1, -1, -HOUR_MS), recordOfDeleted(-HOUR_MS, 1, -HOUR_MS)];
  expect(await reader.select([...old, ...recreated])).toEqual(recreated);
});

test('records of this deployment are known, also those that cannot be read', () => {
  const record = toRecord(newEvent());
  expect(reader.isOwn(record)).toBe(true);
  expect(reader.isOwn(toRecord(newEvent({ type: '"' })))).toBe(true);
  expect(reader.isOwn(toRecord(newEvent(), 'other'))).toBe(false);
  expect(reader.isOwn({ ...record, headers: [] })).toBe(false);
});
