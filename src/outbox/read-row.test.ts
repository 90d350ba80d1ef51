import { expect, test } from 'vitest';
import type { OutboxRow } from '../ports/outbox-store.ts';
import { readRow } from './read-row.ts';

const row: OutboxRow = {
  seq: '7',
  id: '018c251e-0000-7abc-8abc-012345670000',
  tenant: 'acme',
  type: 'order.created',
  data: Buffer.from('1'),
  idempotencyKey: 'k',
  options: null,
};
const withOptions = (options: unknown) => readRow({ ...row, options: options as OutboxRow['options'] });

test('reads a row that posthorn.publish wrote', () => {
  expect(readRow(row)).toEqual({
    id: row.id,
    outboxSeq: '7',
    tenant: 'acme',
    type: 'order.created',
    data: Buffer.from('1'),
    idempotencyKey: 'k',
    schemaVersion: null,
    channels: [],
    endpointIds: null,
    deliverAt: null,
    headers: null,
  });
  expect(
    withOptions({
      channels: ['eu'],
      endpoint_ids: [row.id],
      deliver_at: 5,
      headers: { a: 'b' },
      schema_version: '2',
    }),
  ).toMatchObject({
    channels: ['eu'],
    endpointIds: [row.id],
    deliverAt: 5,
    headers: { a: 'b' },
    schemaVersion: '2',
  });
});

test.each<[string, ReturnType<typeof readRow>]>([
  ['type', readRow({ ...row, type: 'a b' })],
  ['tenant', readRow({ ...row, tenant: '"' })],
  ['options', withOptions([])],
  ['options.channels', withOptions({ channels: 'eu' })],
  ['options.endpoint_ids', withOptions({ endpoint_ids: [1] })],
  ['options.deliver_at', withOptions({ deliver_at: 'soon' })],
  ['options.headers', withOptions({ headers: { a: 1 } })],
  ['options.schema_version', withOptions({ schema_version: 2 })],
])('rejects a row that was inserted by hand and has an invalid %s', (field, problem) => {
  expect(problem).toMatch(new RegExp(`^${field}: is not `));
});
