import { expect, test } from 'vitest';
import { listSchemaFields } from './schema-fields.ts';

test('lists nested fields with their types, and which are required', () => {
  const schema = {
    type: 'object',
    required: ['id', 'items'],
    properties: {
      id: { type: 'string', format: 'uuid', description: 'The order.' },
      state: { enum: ['open', 'paid'] },
      total: { $ref: '#/$defs/money' },
      items: {
        type: 'array',
        items: { type: 'object', required: ['sku'], properties: { sku: { type: ['string', 'null'] } } },
      },
      note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    $defs: { money: { type: 'object', properties: { amount: { type: 'number' } } } },
  };
  expect(listSchemaFields(schema).map((field) => Object.values(field))).toEqual([
    ['id', 'string (uuid)', true, 'The order.'],
    ['state', '"open" | "paid"', false, ''],
    ['total', 'object', false, ''],
    ['total.amount', 'number', false, ''],
    ['items', 'array of object', true, ''],
    ['items[].sku', 'string | null', true, ''],
    ['note', 'string | null', false, ''],
  ]);
});

test('a schema without fields has no rows, and one that refers to itself ends', () => {
  expect(listSchemaFields({ type: 'string' })).toEqual([]);
  expect(listSchemaFields(null)).toEqual([]);
  const loop = { properties: { child: { $ref: '#/$defs/node' } }, $defs: { node: {} as object } };
  loop.$defs.node = { properties: { child: { $ref: '#/$defs/node' } } };
  expect(listSchemaFields(loop).length).toBeLessThan(20);
});
