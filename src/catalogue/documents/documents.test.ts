import { describe, expect, test } from 'vitest';
import { compileStored, readSchema } from '../read-schema.ts';
import { readCatalogue } from './catalogue-file.ts';
import { writeOpenApi } from './write-openapi.ts';
import { writeTypes } from './write-types.ts';

const order = {
  type: 'object',
  required: ['id', 'customer'],
  properties: { id: { type: 'string' }, customer: { $ref: '#/components/schemas/Customer' } },
};
const components = {
  schemas: {
    Order: order,
    Customer: {
      type: 'object',
      properties: { friends: { type: 'array', items: { $ref: '#/components/schemas/Customer' } } },
    },
  },
};

describe('VER-1: documents that describe events', () => {
  test('an OpenAPI 3.1 document with webhooks becomes a catalogue', () => {
    const { event_types } = readCatalogue({
      openapi: '3.1.0',
      info: { version: '1.2.0' },
      webhooks: {
        'order.created': {
          post: {
            summary: 'An order',
            requestBody: {
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' } } },
            },
          },
        },
      },
      components,
    });
    const version = event_types['order.created']!.versions!['v1.2.0']!;
    expect(version.description).toBe('An order');
    const schema = compileStored(version.schema!);
    expect(schema.check({ id: 'a', customer: { friends: [{}] } })).toEqual([]);
    expect(schema.check({ id: 'a', customer: { friends: [1] } })).toHaveLength(1);
  });

  test('an AsyncAPI 3 document becomes a catalogue', () => {
    const { event_types } = readCatalogue({
      asyncapi: '3.0.0',
      info: { version: '2026-04-01' },
      channels: { orders: { messages: { placed: { $ref: '#/components/messages/OrderPlaced' } } } },
      components: {
        ...components,
        messages: { OrderPlaced: { name: 'order.placed', payload: { $ref: '#/components/schemas/Order' } } },
      },
    });
    const { schema } = event_types['order.placed']!.versions!['2026-04-01']!;
    expect(compileStored(schema!).check({})).not.toEqual([]);
  });

  test('a message of an AsyncAPI 3 document may name its schema format, which must be JSON Schema', () => {
    const read = (schemaFormat: string, schema: unknown) =>
      readCatalogue({
        asyncapi: '3.0.0',
        info: { version: '1' },
        channels: { orders: { messages: { placed: { payload: { $ref: '#/components/schemas/Placed' } } } } },
        components: { schemas: { Placed: { schemaFormat, schema } } },
      }).event_types.placed!.versions!.v1!.schema!;
    const { check } = compileStored(read('application/schema+json;version=draft-07', { type: 'integer' }));
    expect([check(1), check('a').length]).toEqual([[], 1]);
    expect(() => read('application/vnd.google.protobuf;version=3', 'message Placed {}')).toThrow(
      'only JSON Schema',
    );
  });

  test.each([
    [1],
    [{}],
    [{ openapi: '3.0.0', webhooks: {} }],
    [{ asyncapi: '2.6.0' }],
    [{ event_types: { a: 1 } }],
  ])('anything else is refused: %j', (document) => {
    expect(() => readCatalogue(document)).toThrow();
  });

  test('the exported OpenAPI document can be imported again', () => {
    const schema = {
      $defs: { id: { type: 'string' } },
      type: 'object',
      properties: { id: { $ref: '#/$defs/id' } },
    };
    const shared = {
      name: 'order.created',
      description: 'An order',
      schema,
      example: { id: 'a' },
      isDeprecated: false,
      sunsetAt: null,
    };
    const document = writeOpenApi([
      { ...shared, version: 'v1', isLatest: false },
      { ...shared, version: 'v2', isLatest: true },
    ]);
    expect(Object.keys(document.webhooks as object)).toEqual(['order.created@v1', 'order.created']);
    const { event_types } = readCatalogue(document);
    expect(Object.keys(event_types['order.created']!.versions!)).toEqual(['v1', 'v2']);
    const imported = compileStored(event_types['order.created']!.versions!.v1!.schema!);
    expect(imported.check({ id: 1 })).toMatchObject([{ path: 'data.id' }]);
  });

  test('schemas whose names differ only in a special character stay apart', () => {
    const shared = { description: '', example: null, isDeprecated: false, sunsetAt: null };
    const { event_types } = readCatalogue(
      writeOpenApi([
        { ...shared, name: 'order', version: 'v1', isLatest: false, schema: { title: 'the old order' } },
        { ...shared, name: 'order_v1', version: null, isLatest: true, schema: { title: 'another type' } },
        { ...shared, name: 'constructor', version: 'v1', isLatest: true, schema: { title: 'inherited' } },
      ]),
    );
    const schemaOf = (name: string) => JSON.stringify(Object.values(event_types[name]!.versions!)[0]!.schema);
    expect(schemaOf('order')).toContain('the old order');
    expect(schemaOf('order_v1')).toContain('another type');
    expect(schemaOf('constructor')).toContain('inherited');
  });

  test('types are a union by type and version', () => {
    const text = writeTypes([
      {
        name: 'order.created',
        version: '2026-04-01',
        schema: readSchema(
          {
            type: 'object',
            required: ['id'],
            properties: {
              id: { type: 'string' },
              'odd name': { type: ['integer', 'null'] },
              status: { enum: ['a', 1] },
              tags: { type: 'array', items: { anyOf: [{ type: 'string' }, { const: 2 }] } },
              child: { $ref: '#' },
            },
          },
          'schema',
        ),
      },
      { name: 'ping', version: null, schema: null },
    ]);
    expect(text).toContain(`export type OrderCreated20260401 = {
  id: string;
  "odd name"?: number | null;
  status?: "a" | 1;
  tags?: Array<string | 2>;
  child?: OrderCreated20260401_d0;
};`);
    expect(text).toContain('  | Envelope<"order.created", "2026-04-01", OrderCreated20260401>');
    expect(text).toContain('  | Envelope<"ping", undefined, Ping>;');
  });

  test('each type has a name of its own that is an identifier, whatever the event is called', () => {
    const names = [
      '-',
      '_',
      '1.2',
      'array',
      'record',
      'envelope',
      'posthorn-event',
      'constructor',
      'a.b',
      'a_b',
    ];
    const text = writeTypes(names.map((name) => ({ name, version: null, schema: null })));
    const declared = [...text.matchAll(/^export (?:type|interface) ([A-Za-z]\w*)/gm)].map(
      ([, name]) => name!,
    );
    expect(declared).toHaveLength(names.length + 2);
    expect(new Set(declared).size).toBe(declared.length);
    expect(declared).not.toContain('Array');
    expect(declared).not.toContain('Record');
  });

  test('fields that are named like keywords of a schema are exported', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/order',
      type: 'object',
      properties: { $id: { type: 'string' }, $schema: { type: 'integer' } },
    };
    const shared = { name: 'order.created', version: 'v1', description: '', example: null };
    const { components } = writeOpenApi([
      { ...shared, schema, isLatest: true, isDeprecated: false, sunsetAt: null },
    ]);
    const { type, properties } = schema;
    expect(components).toEqual({ schemas: { 'order.created': { type, properties } } });
  });
});
