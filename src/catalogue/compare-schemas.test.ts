import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ChangeKind, compareSchemas } from './compare-schemas.ts';
import { compileSchema } from './compile-schema.ts';
import { isObject, type Json, type JsonSchema } from './keywords.ts';
import { normalizeSchema } from './normalize-schema.ts';

function read(schema: unknown) {
  const { schema: normalized, errors } = normalizeSchema(schema, 'schema');
  if (errors !== null) throw new Error(JSON.stringify(errors));
  return normalized;
}
const compare = (before: unknown, after: unknown) => compareSchemas(read(before), read(after));
const field = (schema: object | boolean, required = false) => ({
  type: 'object',
  properties: { a: schema },
  ...(required && { required: ['a'] }),
});
const text = { type: 'string' };

describe('VER-3: changes of a schema, as a consumer of the old one sees them', () => {
  test.each<[string, object, object, ChangeKind, string]>([
    [
      'an optional field added',
      field(text),
      { ...field(text), properties: { a: text, b: text } },
      'added',
      'b',
    ],
    ['an enum narrowed', field({ enum: ['x', 'y'] }), field({ enum: ['x'] }), 'enum_narrowed', 'a'],
    [
      'a constraint tightened',
      field({ ...text, maxLength: 9 }),
      field({ ...text, maxLength: 5 }),
      'tightened',
      'a',
    ],
    ['an optional field made required', field(text), field(text, true), 'required', 'a'],
    ['a type narrowed', field({ type: ['string', 'null'] }), field(text), 'type_narrowed', 'a'],
    ['a pattern added', field(text), field({ ...text, pattern: '^x' }), 'tightened', 'a'],
    [
      'a field added to a closed object',
      { ...field(text), additionalProperties: false },
      { type: 'object', properties: { a: text, b: text }, additionalProperties: false },
      'added',
      'b',
    ],
    [
      'a field added deep inside',
      field({ type: 'array', items: field(text) }),
      field({ type: 'array', items: { ...field(text), properties: { a: text, b: text } } }),
      'added',
      'a[].b',
    ],
    [
      'a constant instead of a text',
      field({ ...text, maxLength: 5 }),
      field({ const: 'abc' }),
      'enum_narrowed',
      'a',
    ],
  ])('additive: %s', (_what, before, after, kind, path) => {
    const { verdict, changes, advice } = compare(before, after);
    expect(verdict).toBe('additive');
    expect(changes).toContainEqual(expect.objectContaining({ path, kind, breaking: false }));
    expect(advice).toEqual([expect.stringContaining('at once')]);
  });

  test.each<[string, object, object, ChangeKind, string]>([
    ['a field removed', field(text), { type: 'object' }, 'removed', 'a'],
    ['a field renamed', field(text), { type: 'object', properties: { b: text } }, 'renamed', 'a'],
    ['a type changed', field(text), field({ type: 'integer' }), 'type_changed', 'a'],
    ['integer to number', field({ type: 'integer' }), field({ type: 'number' }), 'type_changed', 'a'],
    ['null allowed', field(text), field({ type: ['string', 'null'] }), 'type_changed', 'a'],
    ['an enum widened', field({ enum: ['x'] }), field({ enum: ['x', 'y'] }), 'enum_widened', 'a'],
    ['an enum removed', field({ enum: ['x'] }), field(text), 'enum_widened', 'a'],
    [
      'a constraint loosened',
      field({ ...text, maxLength: 5 }),
      field({ ...text, maxLength: 9 }),
      'loosened',
      'a',
    ],
    [
      'a minimum removed',
      field({ type: 'integer', minimum: 0 }),
      field({ type: 'integer' }),
      'loosened',
      'a',
    ],
    ['a required field made optional', field(text, true), field(text), 'optional', 'a'],
    [
      'a pattern changed',
      field({ ...text, pattern: '^x' }),
      field({ ...text, pattern: '^y' }),
      'loosened',
      'a',
    ],
    [
      'an item type changed',
      field({ type: 'array', items: text }),
      field({ type: 'array' }),
      'type_changed',
      'a[]',
    ],
    ['a `not` changed', { not: { required: ['x'] } }, { not: { required: ['y'] } }, 'undecided', ''],
    [
      'another alternative',
      { anyOf: [text, { type: 'null' }] },
      { anyOf: [text, { type: 'integer' }] },
      'undecided',
      '',
    ],
    ['no schema any more', field(text), {}, 'type_changed', ''],
  ])('breaking: %s', (_what, before, after, kind, path) => {
    const { verdict, changes, advice } = compare(before, after);
    expect(verdict).toBe('breaking');
    expect(changes).toContainEqual(expect.objectContaining({ path, kind, breaking: true }));
    expect(advice.length).toBeGreaterThan(0);
  });

  test('the advice is about the changes that are listed', () => {
    const required = (name: string) => ({ type: 'object', required: [name], properties: { [name]: text } });
    expect(compare(required('a'), required('b'))).toMatchObject({
      changes: [{ path: 'a', kind: 'renamed' }],
      advice: [expect.stringContaining('Rename by dual write')],
    });
    const both = { type: 'object', required: ['a', 'b'], properties: { a: text, b: text } };
    expect(compare(required('a'), both).changes).toMatchObject([{ path: 'b', kind: 'added' }]);
    expect(compare(both, required('a')).changes).toMatchObject([{ path: 'b', kind: 'removed' }]);
  });

  test('a schema is compatible with itself, also a recursive one', () => {
    const tree = {
      $defs: {
        node: {
          type: 'object',
          properties: { children: { type: 'array', items: { $ref: '#/$defs/node' } } },
        },
      },
      $ref: '#/$defs/node',
      if: { required: ['a'] },
      else: { required: ['b'] },
      oneOf: [{ required: ['x'] }, { required: ['y'] }],
    };
    expect(compare(tree, tree)).toEqual({ verdict: 'additive', changes: [], advice: [] });
    const renamed = JSON.parse(JSON.stringify(tree).replaceAll('node', 'other'));
    expect(compare(tree, renamed).verdict).toBe('additive');
  });

  test('an alternative (anyOf) is compared with the same rules', () => {
    const before = { anyOf: [text, { type: 'null' }] };
    expect(compare(before, { type: ['string', 'null'] }).verdict).toBe('breaking');
    expect(compare(before, text).verdict).toBe('additive');
    expect(compare({ type: ['string', 'null'] }, before).verdict).toBe('additive');
  });
});

/** What a consumer of the old schema ignores: fields that it does not know, and whether one or more alternatives match. */
function open(schema: JsonSchema): JsonSchema {
  if (!isObject(schema)) return schema;
  const { additionalProperties, oneOf, anyOf, ...rest } = schema as Record<string, JsonSchema & JsonSchema[]>;
  const lists = [oneOf, anyOf]
    .filter((list) => list !== undefined)
    .map((list) => ({ anyOf: list!.map(open) }));
  return {
    ...Object.fromEntries(
      Object.entries(rest).map(([keyword, value]) => {
        if (keyword === 'items') return [keyword, open(value)];
        if (keyword === 'allOf' || keyword === 'prefixItems') return [keyword, value.map(open)];
        if (keyword !== 'properties') return [keyword, value];
        const fields = Object.entries(value as unknown as Json).map(([name, part]) => [
          name,
          open(part as JsonSchema),
        ]);
        return [keyword, Object.fromEntries(fields)];
      }),
    ),
    ...(additionalProperties !== undefined &&
      (additionalProperties as JsonSchema) !== false && { additionalProperties: open(additionalProperties) }),
    ...(lists.length > 0 && {
      allOf: [...((rest.allOf as JsonSchema[] | undefined)?.map(open) ?? []), ...lists],
    }),
  };
}

const names = fc.constantFrom('a', 'b', 'c');
const leaf = fc.oneof(
  fc.constant<JsonSchema>(true),
  fc.constantFrom('string', 'integer', 'number', 'null', 'boolean').map((type) => ({ type })),
  fc.record({ type: fc.constant('integer'), minimum: fc.integer({ min: -2, max: 2 }) }),
  fc.record({ type: fc.constant('number'), exclusiveMaximum: fc.integer({ min: -2, max: 2 }) }),
  fc.record({ type: fc.constant('string'), maxLength: fc.integer({ min: 0, max: 3 }) }),
  fc.record({ enum: fc.subarray(['x', 'xy', 1, null], { minLength: 1 }) }),
  fc.record({ const: fc.constantFrom('x', 0, 1, true) }),
  fc.record({ type: fc.subarray(['string', 'null', 'integer'], { minLength: 1 }) }),
);
const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.record(
      {
        type: fc.constantFrom('object', ['object', 'null']),
        properties: fc.dictionary(names, tie('schema'), { maxKeys: 3 }),
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: fc.oneof(fc.boolean(), tie('schema')),
      },
      { requiredKeys: ['properties'] },
    ),
    fc.record(
      { type: fc.constant('array'), items: tie('schema'), minItems: fc.integer({ min: 0, max: 2 }) },
      { requiredKeys: ['type'] },
    ),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: leaf }),
  ),
})) as { schema: fc.Arbitrary<JsonSchema> };

/** One change somewhere in the schema: most pairs of unrelated schemas are breaking. */
function mutate(schema: JsonSchema, other: JsonSchema, at: number): JsonSchema {
  if (at % 5 === 0 || !isObject(schema)) return at % 3 === 0 ? other : { allOf: [schema, other] };
  const next = Math.floor(at / 5);
  const { properties, items, required } = schema;
  if (isObject(properties)) {
    const fields = Object.keys(properties);
    const name = fields[next % (fields.length + 1)] ?? 'c';
    const changed = { ...properties, [name]: mutate((properties[name] as JsonSchema) ?? true, other, next) };
    const added = at % 2 === 0 ? { required: [...new Set([...((required as string[]) ?? []), name])] } : {};
    return { ...schema, properties: changed, ...added };
  }
  if (items !== undefined) return { ...schema, items: mutate(items as JsonSchema, other, next) };
  return { ...schema, minLength: 1 };
}

const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<unknown>('x', 'xy', 'long', '', 0, 1, -3, 1.5, null, true, [], {}),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 3 }),
  ),
})).value;

test('VER-3: if the verdict is additive, a consumer of the old schema can read every payload of the new one', () => {
  let additive = 0;
  let readable = 0;
  fc.assert(
    fc.property(
      schemas,
      schemas,
      fc.nat(1_000),
      fc.array(values, { minLength: 8, maxLength: 8 }),
      (before, other, at, payloads) => {
        const after = mutate(before, other, at);
        if (compare(before, after).verdict !== 'additive') return;
        additive += 1;
        const isNew = compileSchema(read(after), 'data');
        const isOld = compileSchema(read(open(before)), 'data');
        for (const payload of payloads) {
          if (isNew.check(payload).length > 0) continue;
          readable += 1;
          expect(isOld.check(payload), JSON.stringify({ before, after, payload })).toEqual([]);
        }
      },
    ),
    { numRuns: Number(process.env.POSTHORN_SCHEMA_PAIRS ?? 80) },
  );
  expect(additive).toBeGreaterThan(10);
  expect(readable).toBeGreaterThan(10);
});
