import { expect, test } from 'vitest';
import { listSchemaFields, MAX_FIELDS } from './schema-fields.ts';

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
  const node = { $ref: '#/$defs/node' };
  const loop = {
    properties: { root: node, self: { $ref: '#' } },
    $defs: {
      node: {
        type: 'object',
        properties: { next: node, children: { type: 'array', items: node }, name: { type: 'string' } },
      },
    },
  };
  expect(listSchemaFields(loop).map(({ path, type }) => `${path}: ${type}`)).toEqual([
    'root: object',
    'root.next: object, like root',
    'root.children: array of object, like root',
    'root.name: string',
    'self: any, like the data itself',
  ]);
});

test('a small schema whose references multiply has a bounded number of rows', () => {
  const names = Array.from({ length: 20 }, (_, n) => `f${n}`);
  const level = (n: number) => ({
    properties: Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/d${n + 1}` }])),
  });
  const $defs = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`d${n}`, level(n)]));
  expect(listSchemaFields({ ...level(0), $defs })).toHaveLength(MAX_FIELDS);
});
