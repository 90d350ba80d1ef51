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

test('records that were written twice, or before their tenant was deleted, are left out', async () => {
  const deletedAt = Date.UTC(2026, 0, 2);
  const reader = new AcceptTopicReader('t', 'd', {
    readDeletedTenants: async () => new Map([['gone', deletedAt]]),
  });
  const twice = toRecord(newEvent());
  const old = toRecord(newEvent({ tenant: 'gone', id: newEventId(deletedAt - 1) }));
  const later = toRecord(newEvent({ tenant: 'gone', id: newEventId(deletedAt) }));
  const foreign = { ...twice, headers: [] };
  const selected = await reader.select([twice, old, { ...twice, offset: 1n }, foreign, later]);
  expect(selected).toEqual([twice, foreign, later]);
});
