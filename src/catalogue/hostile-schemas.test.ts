/** Schemas and payloads that try to run code, to hang the process or to make it fail. */
import { describe, expect, test } from 'vitest';
import { Problem } from '../domain/problem.ts';
import { compareSchemas } from './compare-schemas.ts';
import type { Json } from './keywords.ts';
import { compileStored, readSchema } from './read-schema.ts';

/** Below the time after which a worker loses its lease, on a slow machine too. Without their limits, most cases take many seconds. */
const MAX_MS = 900;

const nested = (depth: number, wrap: (inner: unknown) => unknown, inner: unknown): unknown => {
  let value = inner;
  for (let n = 0; n < depth; n += 1) value = wrap(value);
  return value;
};
const many = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
const fields = (count: number, value: unknown) => Object.fromEntries(many(count, (n) => [`f${n}`, value]));

function within<T>(ms: number, work: () => T): T {
  // The time of the processor: other work on the machine does not count.
  const startedAt = process.threadCpuUsage();
  const result = work();
  expect(process.threadCpuUsage(startedAt).user / 1000).toBeLessThan(ms);
  return result;
}

describe('VER-1: a hostile schema is refused', () => {
  test.each<[string, unknown]>([
    ['a reference to another host', { $ref: 'http://169.254.169.254/latest' }],
    ['a reference to a file', { $ref: 'file:///etc/passwd' }],
    ['a reference to a meta-schema', { $ref: 'https://json-schema.org/draft/2020-12/schema' }],
    ['a relative reference', { $ref: 'other.json#/a' }],
    ['a reference without end', { $ref: '#' }],
    [
      'two references without end',
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
    ],
    ['a reference without end in allOf', { allOf: [{ anyOf: [{ $ref: '#' }] }] }],
    ['a reference to the prototype', { $ref: '#/constructor' }],
    ['a reference into a text', { title: 'x', $ref: '#/title/length' }],
    ['a reference to no schema', { title: 'x', $ref: '#/title' }],
    ['a dynamic reference', { $dynamicRef: '#node' }],
    ['a recursive reference', { $recursiveRef: '#' }],
    ['another base inside', { properties: { a: { $id: 'http://example.com/', type: 'string' } } }],
    ['an unknown draft', { $schema: 'http://example.com/draft' }],
    ['a draft that is not a string', { $schema: { $ref: '#' } }],
    ['nesting deeper than the stack', nested(20_000, (items) => ({ items }), true)],
    ['nesting above the limit', nested(70, (items) => ({ items }), true)],
    ['too many parts', { anyOf: many(501, () => ({ type: 'null' })) }],
    ['too many parts that are false', { anyOf: many(600, () => false) }],
    ['too many bytes', { enum: many(20_000, (n) => n) }],
    ['an invalid pattern', { pattern: '(' }],
    ['a lookahead', { pattern: '^(?=.*a)(?=.*b).*$' }],
    ['a lookbehind', { pattern: '(?<=a)b' }],
    ['a back reference', { pattern: '(a)\\1' }],
    ['a very large count', { pattern: 'a{1001}' }],
    ['nested counts', { pattern: '((a{100}){100}){100}' }],
    ['a long pattern', { pattern: 'a'.repeat(1_001) }],
    ['a hostile pattern of names', { patternProperties: { '(?=a)': true } }],
    ['a text instead of a schema', { properties: { a: 'string' } }],
    ['a null instead of a schema', { items: null }],
    ['a list of invalid types', { type: ['function'] }],
    ['a negative length', { minLength: -1 }],
    ['a mistake in an unused definition', { $defs: { a: { pattern: '(' } } }],
  ])('%s', (_what, schema) => {
    within(MAX_MS, () => expect(() => readSchema(schema, 'schema')).toThrow(Problem));
  });
});

describe('VER-1: a schema or payload cannot keep the process busy', () => {
  const twice = (n: number) => ({ allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] });
  const doubling = {
    $defs: { ...Object.fromEntries(many(40, (n) => [`d${n}`, twice(n)])), d40: { type: 'object' } },
    $ref: '#/$defs/d0',
  };
  const tree = {
    $ref: '#/$defs/t',
    $defs: { t: { allOf: many(3, () => ({ properties: { c: { $ref: '#/$defs/t' } } })) } },
  };

  test.each<[string, unknown, unknown]>([
    ['references that double', doubling, {}],
    ['references that multiply with the depth of the payload', tree, nested(60, (c) => ({ c }), {})],
    ['nested quantifiers', { pattern: '^(a+)+$' }, `${'a'.repeat(100_000)}!`],
    ['overlapping alternatives', { pattern: '^(a|a)*$' }, `${'a'.repeat(100_000)}!`],
    ['a quadratic pattern', { pattern: 'a*a*a*b' }, 'a'.repeat(200_000)],
    [
      'many patterns on a long text',
      { allOf: many(200, (n) => ({ pattern: `x{${n + 1}}y` })) },
      'x'.repeat(200_000),
    ],
    [
      'many patterns of names',
      { patternProperties: Object.fromEntries(many(200, (n) => [`^f.*${n}$`, true])) },
      fields(10_000, 1),
    ],
    ['unique objects', { uniqueItems: true }, many(60_000, (n) => ({ n }))],
    [
      'unique large objects, many times',
      { allOf: many(300, () => ({ uniqueItems: true })) },
      many(2_000, (n) => ({ n, t: 'x'.repeat(50) })),
    ],
    [
      'a long enum for many items',
      { items: { enum: many(5_000, (n) => `value ${n}`) } },
      many(20_000, () => 'none'),
    ],
    [
      'many required fields for many items',
      { items: { required: many(4_000, (n) => `field${n}`) } },
      many(20_000, () => ({})),
    ],
    [
      'many schemas for many items',
      { allOf: many(200, () => ({ items: { type: 'integer' } })) },
      many(60_000, (n) => n),
    ],
    [
      'lengths of a long text, many times',
      { allOf: many(450, () => ({ maxLength: 1e9, minLength: 1 })) },
      'ä'.repeat(120_000),
    ],
    [
      'formats of a long text, many times',
      { allOf: many(450, () => ({ format: 'uri' })) },
      `http://x/${'a'.repeat(250_000)}`,
    ],
    ['contains', { allOf: many(200, () => ({ contains: { const: 'x' } })) }, many(50_000, (n) => n)],
    ['names', { allOf: many(200, () => ({ propertyNames: { maxLength: 9 } })) }, fields(20_000, 1)],
    [
      'unevaluated fields',
      {
        anyOf: many(200, (n) => ({ properties: { [`f${n}`]: true } })),
        unevaluatedProperties: { type: 'integer' },
      },
      fields(10_000, 1),
    ],
    [
      'a payload deeper than the stack',
      { $ref: '#/$defs/l', $defs: { l: { items: { $ref: '#/$defs/l' } } } },
      nested(50_000, (n) => [n], 1),
    ],
    [
      'counts of keys',
      { allOf: many(450, () => ({ minProperties: 1, maxProperties: 1e9 })) },
      fields(30_000, 1),
    ],
    [
      'no further fields',
      { allOf: many(450, () => ({ additionalProperties: true, propertyNames: true })) },
      fields(30_000, 1),
    ],
    [
      'fields with a pattern',
      { allOf: many(200, () => ({ patternProperties: { '': true } })) },
      fields(30_000, 1),
    ],
    ['an enum of objects', { enum: many(5_000, (n) => ({ n })) }, fields(30_000, 1)],
    [
      'an enum of objects that differ inside',
      { enum: many(3_000, (n) => ({ a: { n } })) },
      { a: fields(30_000, 1) },
    ],
    [
      'constants that are objects',
      { anyOf: many(450, (n) => ({ const: { a: { n } } })) },
      { a: fields(30_000, 1) },
    ],
    ['an array in an enum', { enum: many(3_000, (n) => [[n]]) }, [fields(30_000, 1)]],
    [
      'one large unique item, many times',
      { allOf: many(450, () => ({ uniqueItems: true })) },
      [fields(30_000, 1)],
    ],
    ['alternatives that are false', { items: { anyOf: many(450, () => false) } }, many(60_000, () => 1)],
    [
      'nothing is contained',
      { allOf: many(220, () => ({ minContains: 0, contains: false })) },
      many(120_000, () => 1),
    ],
    [
      'dependent schemas of many items',
      { items: { dependentSchemas: Object.fromEntries(many(400, (n) => [`f${n}`, true])) } },
      many(60_000, () => ({})),
    ],
    [
      'evaluated fields that are merged many times',
      {
        items: {
          unevaluatedProperties: false,
          ...(nested(50, (inner) => ({ anyOf: [inner] }), {
            properties: Object.fromEntries(many(400, (n) => [`f${n}`, true])),
          }) as object),
        },
      },
      many(400, () => fields(20, 1)),
    ],
    [
      'evaluated fields with a pattern that are merged many times',
      {
        unevaluatedProperties: false,
        ...(nested(60, (inner) => ({ anyOf: [inner] }), { patternProperties: { '': true } }) as object),
      },
      fields(20_000, 1),
    ],
    [
      'many parts',
      { properties: Object.fromEntries(many(450, (n) => [`f${n}`, { type: 'string', minLength: n % 7 }])) },
      fields(450, 'long text'),
    ],
  ])('%s', (_what, schema, payload) => {
    const compiled = within(MAX_MS, () => compileStored(schema as Json));
    within(MAX_MS, () => expect(Array.isArray(compiled.check(payload))).toBe(true));
  });
});

describe('VER-1: a schema cannot run code, use our own keywords or read inherited fields', () => {
  test.each<[string, unknown, unknown, boolean]>([
    ['asynchronous validation', { $async: true, type: 'object' }, 1, false],
    [
      'code in a name',
      { properties: { '"]};process.exit(1);//': { type: 'string' } } },
      { '"]};process.exit(1);//': 1 },
      false,
    ],
    ['code in a value', { const: '`+process.exit(1)+`' }, 1, false],
    ['code in a format', { format: '"+process.exit(1)+"' }, 'x', true],
    ['code in a keyword', { 'x"]; process.exit(1); //': 1, type: 'string' }, 'x', true],
    ['our own keyword', { posthornStep: 1e99, type: 'string' }, 'x', true],
    ['references to data', { properties: { a: { type: { $data: '/b' } } } }, {}, true],
    ['inherited fields', { required: ['toString', 'constructor'] }, {}, false],
    [
      'a field named __proto__',
      JSON.parse('{"properties": {"__proto__": {"type": "string"}}}'),
      JSON.parse('{"__proto__": 1}'),
      true,
    ],
    ['a default', { properties: { a: { default: 1 } }, required: ['a'] }, {}, false],
    ['nullable of OpenAPI', { type: 'string', nullable: true }, null, false],
    ['an identifier', { $id: 'https://example.com/schema', type: 'string' }, 'x', true],
  ])('%s', (_what, schema, payload, isValid) => {
    const before = JSON.stringify(payload);
    let errors: readonly unknown[];
    try {
      errors = compileStored(schema as Json).check(payload);
    } catch (error) {
      expect(error).toBeInstanceOf(Problem);
      return;
    }
    expect(errors.length === 0).toBe(isValid);
    expect(JSON.stringify(payload)).toBe(before);
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });
});

describe('VER-2: comparing two schemas cannot keep the process busy', () => {
  const chain = (depth: number, kind: string): unknown =>
    nested(
      depth,
      (a) => ({
        type: 'object',
        properties: { a, b: { type: 'integer' } },
        anyOf: [{ required: ['a'] }, { required: ['b'] }],
      }),
      { type: 'string', enum: many(60, (n) => `${kind}${n}`) },
    );
  /** Fields that must be in a long list, in another one, and match one of 60 alternatives. */
  const listed = (count: number, length: number) => ({
    $defs: {
      long: { enum: many(4_000, (n) => n) },
      field: {
        allOf: [{ $ref: '#/$defs/long' }, { enum: many(length, (n) => n) }],
        anyOf: many(60, (n) => ({ minimum: -n })),
      },
    },
    properties: fields(count, { $ref: '#/$defs/field', minimum: count }),
  });

  test.each<[string, unknown, unknown]>([
    ['two lists of 9,000 values', { enum: many(9_000, (n) => n) }, { enum: many(9_000, (n) => n + 10_000) }],
    [
      '160 fields with lists of 6,000 values',
      { $defs: { e: { enum: many(6_000, (n) => n) } }, properties: fields(160, { $ref: '#/$defs/e' }) },
      {
        $defs: { e: { enum: many(6_000, (n) => n + 10_000) } },
        properties: fields(160, { $ref: '#/$defs/e' }),
      },
    ],
    ['alternatives that multiply with the depth', chain(30, 'x'), chain(30, 'y')],
    ['long lists of values in many alternatives, one short', listed(15, 2), listed(60, 2)],
    ['long lists of values in many alternatives', listed(15, 3_000), listed(60, 3_000)],
  ])('%s', (_what, before, after) => {
    const [one, other] = [readSchema(before, 'schema'), readSchema(after, 'schema')];
    within(MAX_MS, () => expect(compareSchemas(one, other).verdict).toBe('breaking'));
  });

  test.each([
    ['required', { required: Array(32_000).fill(1) }],
    ['type', { type: Array(7_000).fill('string') }],
    ['dependentRequired', { dependentRequired: { a: Array(32_000).fill(1) } }],
    [
      'dependencies of draft-07',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        properties: { default: { dependencies: { a: Array(32_000).fill(1) } } },
      },
    ],
    [
      'dependentRequired of many names',
      {
        dependentRequired: Object.fromEntries(many(4, (n) => [`a${n}`, Array(8_000).fill(1)])),
      },
    ],
  ])('a list of %s that repeats itself is refused', (_what, schema) => {
    within(MAX_MS, () => expect(() => readSchema(schema, 'schema')).toThrow(/must not have duplicate items/));
  });

  test('a short list that repeats itself is refused with its path, and a long one without repetition is not', () => {
    expect(() => readSchema({ required: ['a', 'a'] }, 'schema')).toThrow('schema.required: must not have');
    const required = many(4_000, (n) => `field${n}`);
    within(MAX_MS, () => expect(() => readSchema({ required }, 'schema')).not.toThrow());
  });

  test('many large patterns in one schema are refused', () => {
    const schema = {
      properties: Object.fromEntries(
        many(300, (n) => [`p${n}`, { type: 'string', pattern: `^(a|b${n}){1,100}c$` }]),
      ),
    };
    within(MAX_MS, () =>
      expect(() => readSchema(schema, 'schema')).toThrow(/too many or too large patterns/),
    );
  });
});

test('VER-1: the path of an error has only characters that PostgreSQL stores, whatever the names in the payload are', () => {
  const { check } = compileStored({ type: 'object', additionalProperties: false });
  const paths = ['a\0b', 'a\ud800', '\ud83d\ude00'.repeat(400)].flatMap((name) =>
    check({ [name]: 1 }).map(({ path }) => path),
  );
  expect(paths).toHaveLength(3);
  for (const path of paths) expect(path.includes('\0') || !path.isWellFormed(), path).toBe(false);
});
