import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainFilter, type FilterSubject, MAX_STEPS_PER_FILTER, matchesFilter } from './filter.ts';
import { parseFilter } from './filter-syntax.ts';

const subject = (data: unknown, part: Partial<FilterSubject> = {}): FilterSubject => ({
  type: 'order.created',
  channels: [],
  schemaVersion: null,
  idempotencyKey: null,
  data,
  ...part,
});

function parsed(filter: unknown) {
  const result = parseFilter(filter);
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.filter;
}

const matches = (filter: unknown, event: FilterSubject): boolean =>
  matchesFilter(parsed(filter), event, { stepsLeft: MAX_STEPS_PER_FILTER });

const wants = (filter: unknown, data: unknown): boolean => matches(filter, subject(data));

describe('FAN-2: a filter', () => {
  it.each<[string, unknown, unknown, boolean]>([
    ['everything', {}, null, true],
    ['an equal value', { 'data.a': 1 }, { a: 1 }, true],
    ['another value', { 'data.a': 1 }, { a: 2 }, false],
    ['the same in another type', { 'data.a': 1 }, { a: '1' }, false],
    ['the same number in other digits', { 'data.a': 1.1 }, JSON.parse('{"a":1.10}'), true],
    ['data that is not an object', { data: 5 }, 5, true],
    ['a path into a value that is not an object', { 'data.a': 5 }, 5, false],
    ['all keys', { 'data.a': 1, 'data.b': 2 }, { a: 1, b: 2 }, true],
    ['one key of two', { 'data.a': 1, 'data.b': 2 }, { a: 1, b: 3 }, false],
    ['a path in dots', { 'data.a.b.c': true }, { a: { b: { c: true } } }, true],
    ['a path in objects', { data: { a: { 'b.c': true } } }, { a: { b: { c: true } } }, true],
    ['a name with a dot', { 'data.a\\.b': 1 }, { 'a.b': 1 }, true],
    ['a name with a backslash', { 'data.a\\\\b': 1 }, { 'a\\b': 1 }, true],
    ['a name with a dollar', { 'data.$ref': 1 }, { $ref: 1 }, true],
    ['null', { 'data.a': null }, { a: null }, true],
    ['missing is not null', { 'data.a': null }, {}, false],
    ['exists', { 'data.a': { $exists: true } }, { a: null }, true],
    ['exists, an empty array', { 'data.a': { $exists: true } }, { a: [] }, true],
    ['does not exist', { 'data.a': { $exists: true } }, {}, false],
    ['must not exist', { 'data.a': { $exists: false } }, {}, true],
    ['must not exist, but does', { 'data.a': { $exists: false } }, { a: null }, false],
    ['ne of another value', { 'data.a': { $ne: 1 } }, { a: 2 }, true],
    ['ne of the same', { 'data.a': { $ne: 1 } }, { a: 1 }, false],
    ['ne of a missing value', { 'data.a': { $ne: 1 } }, {}, true],
    ['ne of an array with it', { 'data.a': { $ne: 1 } }, { a: [2, 1] }, false],
    ['gt', { 'data.a': { $gt: 1 } }, { a: 1 }, false],
    ['gte', { 'data.a': { $gte: 1 } }, { a: 1 }, true],
    ['lt', { 'data.a': { $lt: 1 } }, { a: 1 }, false],
    ['lte', { 'data.a': { $lte: 1 } }, { a: 1 }, true],
    ['a range', { 'data.a': { $gt: 1, $lt: 3 } }, { a: 2 }, true],
    ['an ordering of texts', { 'data.at': { $gte: '2026-01-01' } }, { at: '2026-02-03T04:05:06Z' }, true],
    ['an ordering of two types', { 'data.a': { $gt: 1 } }, { a: '2' }, false],
    ['an ordering of two types, reversed', { 'data.a': { $lte: 1 } }, { a: '2' }, false],
    ['an ordering of null', { 'data.a': { $gte: 0 } }, { a: null }, false],
    ['an ordering of a boolean', { 'data.a': { $gte: 0 } }, { a: true }, false],
    ['in', { 'data.a': { $in: [1, 'x', null] } }, { a: 'x' }, true],
    ['in, null', { 'data.a': { $in: [1, 'x', null] } }, { a: null }, true],
    ['not in', { 'data.a': { $in: [1, 'x'] } }, { a: '1' }, false],
    ['nin', { 'data.a': { $nin: [1, 'x'] } }, { a: 2 }, true],
    ['nin of a missing value', { 'data.a': { $nin: [1, 'x'] } }, {}, true],
    ['prefix', { 'data.a': { $prefix: 'DE' } }, { a: 'DE-1' }, true],
    ['prefix, another case', { 'data.a': { $prefix: 'de' } }, { a: 'DE-1' }, false],
    ['prefix of a number', { 'data.a': { $prefix: '1' } }, { a: 12 }, false],
    ['suffix', { 'data.a': { $suffix: '-1' } }, { a: 'DE-1' }, true],
    ['and', { $and: [{ 'data.a': 1 }, { 'data.b': 2 }] }, { a: 1, b: 2 }, true],
    ['or', { $or: [{ 'data.a': 1 }, { 'data.b': 2 }] }, { b: 2 }, true],
    ['or, neither', { $or: [{ 'data.a': 1 }, { 'data.b': 2 }] }, {}, false],
    ['not', { $not: { 'data.a': 1 } }, { a: 2 }, true],
    ['or below a path', { 'data.a': { $or: [{ $lt: 1 }, { $gt: 9 }] } }, { a: 10 }, true],
    ['not below a path', { 'data.a': { $not: { $prefix: 'x' } } }, { a: 'xy' }, false],
    ['paths below or below a path', { data: { $or: [{ a: 1 }, { b: 2 }] } }, { b: 2 }, true],
    ['an element', { 'data.tags': 'vip' }, { tags: ['new', 'vip'] }, true],
    ['no such element', { 'data.tags': 'vip' }, { tags: [['vip']] }, false],
    ['an element by its number', { 'data.items.1.sku': 'b' }, { items: [{ sku: 'a' }, { sku: 'b' }] }, true],
    ['another element', { 'data.items.0.sku': 'b' }, { items: [{ sku: 'a' }, { sku: 'b' }] }, false],
    ['beyond the end', { 'data.items.2': { $exists: true } }, { items: [1, 2] }, false],
    ['a number as a name', { 'data.2026': 1 }, { 2026: 1 }, true],
    ['into each element', { 'data.items.sku': 'b' }, { items: [{ sku: 'a' }, 1, { sku: ['b'] }] }, true],
    ['not through arrays in arrays', { 'data.items.sku': 'b' }, { items: [[{ sku: 'b' }]] }, false],
    ['one greater, another less', { 'data.q': { $gt: 5, $lt: 3 } }, { q: [1, 9] }, true],
    ['the length of an array is not data', { 'data.a.length': { $exists: true } }, { a: [1] }, false],
    ['the length of a text is not data', { 'data.a.length': { $exists: true } }, { a: 'x' }, false],
    ['inherited properties of objects are not data', { 'data.constructor': { $exists: true } }, {}, false],
    ['inherited properties of arrays are not data', { 'data.a.map': { $exists: true } }, { a: [] }, false],
    ['an inherited __proto__ is not data', { 'data.__proto__': { $exists: true } }, {}, false],
    [
      '__proto__ can be a name in the data',
      { 'data.__proto__.a': 1 },
      JSON.parse('{"__proto__":{"a":1}}'),
      true,
    ],
  ])('%s', (_, filter, data, expected) => {
    expect(wants(filter, data)).toBe(expected);
    expect(explainFilter(parsed(filter), subject(data)).matches).toBe(expected);
  });

  it('can also test the type, channels, schema version and idempotency key', () => {
    const event = subject({}, { channels: ['eu', 'vip'], schemaVersion: '2', idempotencyKey: 'k-1' });
    expect(matches({ type: { $prefix: 'order.' }, channels: 'vip' }, event)).toBe(true);
    expect(matches({ schema_version: '2', idempotency_key: { $prefix: 'k-' } }, event)).toBe(true);
    expect(matches({ channels: { $nin: ['us'] } }, event)).toBe(true);
    expect(matches({ schema_version: { $exists: true } }, subject({}))).toBe(false);
  });

  it('does not confuse long integers with their neighbours', () => {
    const data = JSON.parse('{"id":9007199254740993}');
    expect(wants({ 'data.id': { $gt: Number.MAX_SAFE_INTEGER } }, data)).toBe(true);
    expect(wants({ 'data.id': Number.MAX_SAFE_INTEGER }, data)).toBe(false);
    expect(parseFilter(JSON.parse('{"data.id":9007199254740993}'))).toMatchObject({ ok: false });
  });

  it('has a budget, and matches if it exceeds it', () => {
    const data = { items: Array.from({ length: 200_000 }, (_, n) => n) };
    const work = { stepsLeft: 1000 };
    expect(matchesFilter(parsed({ 'data.items': -1 }), subject(data), work)).toBe(true);
    expect(work.stepsLeft).toBe(-1);
    // Also inside a negation, which inverts the unfinished result.
    expect(matchesFilter(parsed({ $not: { 'data.items': -1 } }), subject(data), { stepsLeft: 1000 })).toBe(
      true,
    );
    expect(explainFilter(parsed({ 'data.items': -1 }), subject(data))).toMatchObject({ matches: true });
    expect(explainFilter(parsed({ 'data.items': -1 }), subject(data)).reason).toContain('steps');
  });
});

describe('the reason for no match', () => {
  it.each<[unknown, unknown, string | null]>([
    [{ 'data.amount': { $gte: 100 } }, { amount: 100 }, null],
    [{ 'data.amount': { $gte: 100 } }, { amount: 50 }, 'data.amount.$gte: 50 is not at least 100'],
    [{ 'data.amount': { $gte: 100 } }, {}, 'data.amount.$gte: there is no such value'],
    [{ 'data.a': 1, 'data.b': 2 }, { a: 1, b: 'x' }, 'data.b: "x" is not equal to 2'],
    [{ 'data.a': { $ne: 1 } }, { a: [2, 1] }, 'data.a.$ne: 1 is equal to 1'],
    [
      { 'data.a': { $in: [1, 2] } },
      { a: [3] },
      'data.a.$in: neither the array nor an element of it is one of the 2 given',
    ],
    [{ 'data.a': { $exists: false } }, { a: {} }, 'data.a.$exists: an object is there'],
    [{ $or: [{ 'data.a': 1 }, { 'data.a': 2 }] }, {}, '$or: none of its 2 filters holds'],
    [{ $not: { 'data.a': 1 } }, { a: 1 }, '$not: the filter that it negates holds'],
    [
      { $and: [{ type: 'order.created' }, { type: 'x' }] },
      1,
      '$and[1].type: "order.created" is not equal to "x"',
    ],
    [
      { 'data.a': { $prefix: 'b' } },
      { a: 'a'.repeat(300) },
      `data.a.$prefix: "${'a'.repeat(80)}"… is not a text that begins with "b"`,
    ],
  ])('of %j on %j', (filter, data, reason) => {
    expect(explainFilter(parsed(filter), subject(data))).toEqual({ matches: reason === null, reason });
  });
});

describe('FAN-2: an invalid filter', () => {
  const nested = (depth: number): unknown => (depth === 0 ? { 'data.a': 1 } : { $not: nested(depth - 1) });
  it.each<[unknown, string]>([
    [5, 'filter'],
    ['x', 'filter'],
    [[], 'filter'],
    [null, 'filter'],
    [{ amount: 5 }, 'filter.amount'],
    [{ constructor: 5 }, 'filter.constructor'],
    [JSON.parse('{"__proto__":5}'), 'filter.__proto__'],
    [{ 'type.x': 5 }, 'filter.type.x'],
    [{ '': 5 }, 'filter.'],
    [{ 'data.': 5 }, 'filter.data.'],
    [{ 'data..a': 5 }, 'filter.data..a'],
    [{ 'data.a\\n': 5 }, 'filter.data.a\\n'],
    [{ $eq: 5 }, 'filter.$eq'],
    [{ 'data.a': {} }, 'filter.data.a'],
    [{ 'data.a': [1] }, 'filter.data.a'],
    [{ 'data.a': { $like: 'x' } }, 'filter.data.a.$like'],
    [{ 'data.a': { $toString: 'x' } }, 'filter.data.a.$toString'],
    [{ 'data.amount': { $gte: null } }, 'filter.data.amount.$gte'],
    [{ 'data.amount': { $gte: [1] } }, 'filter.data.amount.$gte'],
    [{ data: { amount: { $lt: true } } }, 'filter.data.amount.$lt'],
    [{ 'data.a': { $eq: { b: 1 } } }, 'filter.data.a.$eq'],
    [{ 'data.a': { $eq: 2 ** 53 } }, 'filter.data.a.$eq'],
    [JSON.parse('{"data.a":{"$lt":1e999}}'), 'filter.data.a.$lt'],
    [{ 'data.a': { $in: 5 } }, 'filter.data.a.$in'],
    [{ 'data.a': { $in: [] } }, 'filter.data.a.$in'],
    [{ 'data.a': { $in: [1, {}] } }, 'filter.data.a.$in[1]'],
    [{ 'data.a': { $nin: Array(201).fill(1) } }, 'filter.data.a.$nin'],
    [{ 'data.a': { $exists: 1 } }, 'filter.data.a.$exists'],
    [{ 'data.a': { $prefix: 5 } }, 'filter.data.a.$prefix'],
    [{ 'data.a': { $suffix: 'x'.repeat(1025) } }, 'filter.data.a.$suffix'],
    [{ $and: [] }, 'filter.$and'],
    [{ $or: { 'data.a': 1 } }, 'filter.$or'],
    [{ $or: [{ 'data.a': 1 }, { typ: 1 }] }, 'filter.$or[1].typ'],
    [{ $or: [5] }, 'filter.$or[0]'],
    [{ $not: {} }, 'filter.$not'],
    [{ $not: [] }, 'filter.$not'],
    [nested(10), `filter${'.$not'.repeat(10)}`],
    [{ [`data.${'x'.repeat(300)}`]: 1 }, `filter.data.${'x'.repeat(75)}…`],
    [{ [`data${'.x'.repeat(16)}`]: 1 }, `filter.data${'.x'.repeat(16)}`],
    [{ $and: Array.from({ length: 101 }, () => ({ type: 'a' })) }, 'filter.$and[100].type'],
    [{ 'data.a': { $in: Array(200).fill('x'.repeat(100)) } }, 'filter'],
  ])('case %#: $1', (filter, path) => {
    const result = parseFilter(filter);
    expect(result).toEqual({ ok: false, errors: [{ path, message: expect.stringMatching(/./) }] });
  });

  it('reports every place that is wrong, up to a limit', () => {
    const two = parseFilter({ typ: 1, 'data.a': { $gt: null } });
    expect(two.ok ? [] : two.errors.map(({ path }) => path)).toEqual(['filter.typ', 'filter.data.a.$gt']);
    const many = parseFilter(Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`x${n}`, 1])));
    expect(many.ok ? [] : many.errors).toHaveLength(20);
  });

  it('is valid exactly at the limits', () => {
    expect(parseFilter(nested(9)).ok).toBe(true);
    expect(parseFilter({ $and: Array.from({ length: 100 }, () => ({ type: 'a' })) }).ok).toBe(true);
    expect(parseFilter({ 'data.a': { $in: Array(200).fill(Number.MAX_SAFE_INTEGER) } }).ok).toBe(true);
    expect(parseFilter({ [`data${'.x'.repeat(15)}`]: 'x'.repeat(1024) }).ok).toBe(true);
  });
});

/** Few names and values, so that filters match the data often enough. */
const name = fc.constantFrom('a', 'b', '0', '__proto__', 'constructor');
const scalar = fc.constantFrom<string | number | boolean | null>(
  null,
  true,
  false,
  0,
  1,
  2,
  '',
  'a',
  'ab',
  'b',
);
const data = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    // Like JSON.parse: every name is an own property.
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 3 })
      .map((entries) => JSON.parse(`{${entries.map(([k, v]) => `"${k}":${JSON.stringify(v)}`).join()}}`)),
  ),
})).value;
const path = fc.array(name, { maxLength: 3 }).map((names) => ['data', ...names].join('.'));
const comparable = fc.constantFrom<string | number>(0, 1, 2, 'a', 'ab');
const operand = fc.oneof(
  fc.record({ $eq: scalar }),
  fc.record({ $ne: scalar }),
  fc.record({ $in: fc.array(scalar, { minLength: 1, maxLength: 3 }) }),
  fc.record({ $gt: comparable }),
  fc.record({ $lte: comparable, $gte: comparable }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $prefix: fc.constantFrom('', 'a') }),
);
const filter = fc.letrec<{ filter: Record<string, unknown> }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 2 },
    fc.tuple(path, fc.oneof(scalar, operand)).map(([at, what]) => ({ [at]: what })),
    fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((of) => ({ $and: of })),
    fc.array(tie('filter'), { minLength: 1, maxLength: 3 }).map((of) => ({ $or: of })),
    tie('filter').map((of) => ({ $not: of })),
  ),
})).filter;

describe('FAN-2: laws of filters', () => {
  const law = (check: (a: object, b: object, data: unknown) => void) =>
    fc.assert(fc.property(filter, filter, data, check), { numRuns: 2000 });

  it('a negation matches exactly what the filter does not', () => {
    law((a, _, value) => {
      expect(wants({ $not: a }, value)).toBe(!wants(a, value));
    });
  });

  it('the laws of De Morgan hold', () => {
    law((a, b, value) => {
      expect(wants({ $not: { $and: [a, b] } }, value)).toBe(
        wants({ $or: [{ $not: a }, { $not: b }] }, value),
      );
      expect(wants({ $not: { $or: [a, b] } }, value)).toBe(
        wants({ $and: [{ $not: a }, { $not: b }] }, value),
      );
    });
  });

  it('the order of conditions does not matter', () => {
    law((a, b, value) => {
      expect(wants({ $and: [a, b] }, value)).toBe(wants({ $and: [b, a] }, value));
      expect(wants({ $or: [a, b] }, value)).toBe(wants({ $or: [b, a] }, value));
    });
  });

  it('$nin is not $in, $ne is not $eq, $in is several $eq', () => {
    const choices = fc.array(scalar, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(path, choices, data, (at, several, value) => {
        const [one] = several;
        expect(wants({ [at]: { $nin: several } }, value)).toBe(!wants({ [at]: { $in: several } }, value));
        expect(wants({ [at]: { $ne: one } }, value)).toBe(!wants({ [at]: { $eq: one } }, value));
        expect(wants({ [at]: one }, value)).toBe(wants({ [at]: { $eq: one } }, value));
        const anyOf = { $or: several.map((choice) => ({ [at]: choice })) };
        expect(wants({ [at]: { $in: several } }, value)).toBe(wants(anyOf, value));
      }),
      { numRuns: 2000 },
    );
  });

  it('dots and nested objects are the same', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 3 }), operand, data, (names, what, value) => {
        const deep = names.reduceRight<unknown>(
          (inner, at) => JSON.parse(`{"${at}":${JSON.stringify(inner)}}`),
          what,
        );
        expect(wants({ data: deep }, value)).toBe(wants({ [`data.${names.join('.')}`]: what }, value));
      }),
    );
  });

  it('there is a reason exactly if the event does not match', () => {
    law((a, _, value) => {
      const { matches: does, reason } = explainFilter(parsed(a), subject(value));
      expect(does).toBe(wants(a, value));
      expect(reason === null).toBe(does);
    });
  });

  it('no JSON makes it throw, neither as a filter nor as data', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), filter, (any, value, valid) => {
        const result = parseFilter(any);
        if (result.ok) explainFilter(result.filter, subject(value));
        else expect(result.errors.length).toBeGreaterThan(0);
        explainFilter(parsed(valid), subject(value));
      }),
      { numRuns: 2000 },
    );
    let deep: unknown = 1;
    for (let n = 0; n < 50_000; n += 1) deep = n % 2 === 0 ? [deep] : { $not: deep };
    expect(parseFilter(deep).ok).toBe(false);
    expect(parseFilter({ $not: deep }).ok).toBe(false);
    expect(wants({ 'data.a.b': 1 }, deep)).toBe(false);
  });
});
