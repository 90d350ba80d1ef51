import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { publicId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { type ReadContext, readEvent } from './read-event.ts';

const limits = { maxEventBytes: 100, maxNesting: 5 };
const context: ReadContext = {
  keyTenant: null,
  idempotencyKey: null,
  isReservedHeader: (name) => name.toLowerCase().startsWith('webhook-'),
};

const read = (body: unknown, part: Partial<ReadContext> = {}) =>
  readEvent(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), limits, {
    ...context,
    ...part,
  });

function problemOf(work: () => unknown): Problem {
  try {
    work();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

const pathsOf = (problem: Problem) => problem.errors.map(({ path }) => path);

describe('an event', () => {
  it('needs only a type and data: every other field has a default', () => {
    expect(read({ type: 'order.created', data: {} })).toEqual({
      tenant: 'default',
      type: 'order.created',
      data: Buffer.from('{}'),
      idempotencyKey: null,
      schemaVersion: null,
      channels: [],
      endpointIds: null,
      deliverAt: null,
      headers: null,
    });
  });

  it('ACC-5: carries data byte for byte', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
        const data = JSON.stringify(value, null, indent);
        fc.pre(Buffer.byteLength(data) <= limits.maxEventBytes);
        expect(read(`{"type":"a", "data" : ${data} }`).data.toString()).toBe(data);
      }),
    );
    for (const data of ['12345678901234567890', '1.10', '"\\u00e9é\\u0000"', '{"b":1,"a":2}', 'null', '-0'])
      expect(read(`{"data":${data},"type":"a"}`).data.toString()).toBe(data);
  });

  it('ACC-9: may have targets, a time, headers, channels, a schema version', () => {
    const endpoint = '0190aaaa-0000-7000-8000-000000000001';
    const event = read({
      type: 'a',
      data: 1,
      tenant: 'acme:eu-1',
      schema_version: '2',
      channels: ['x'],
      endpoint_ids: [publicId('ep', endpoint)],
      deliver_at: '2030-01-31T12:00:00.5+01:00',
      headers: { 'X-Trace': 'abc' },
    });
    expect(event).toMatchObject({
      tenant: 'acme:eu-1',
      schemaVersion: '2',
      channels: ['x'],
      endpointIds: [endpoint],
      deliverAt: Date.UTC(2030, 0, 31, 11, 0, 0, 500),
      headers: { 'X-Trace': 'abc' },
    });
  });

  it('treats null like an absent field', () => {
    const optional = [
      'tenant',
      'idempotency_key',
      'schema_version',
      'channels',
      'endpoint_ids',
      'deliver_at',
      'headers',
    ];
    const nulls = Object.fromEntries(optional.map((name) => [name, null]));
    expect(read({ type: 'a', data: null, ...nulls })).toEqual(read({ type: 'a', data: null }));
  });

  it.each([
    ['no type', { data: 1 }, ['type']],
    ['no data', { type: 'a' }, ['data']],
    ['a type with a space', { type: 'a b', data: 1 }, ['type']],
    ['a type that ends in a dot', { type: 'a.', data: 1 }, ['type']],
    ['a type that is reserved', { type: 'posthorn.x', data: 1 }, ['type']],
    ['a type that is too long', { type: 'a'.repeat(129), data: 1 }, ['type']],
    ['a type that is a number', { type: 5, data: 1 }, ['type']],
    ['an empty key', { type: 'a', data: 1, idempotency_key: '' }, ['idempotency_key']],
    ['a key that is too long', { type: 'a', data: 1, idempotency_key: 'k'.repeat(256) }, ['idempotency_key']],
    ['a key with NUL', { type: 'a', data: 1, idempotency_key: 'a\u0000' }, ['idempotency_key']],
    ['a key with a lone surrogate', { type: 'a', data: 1, idempotency_key: '\ud800' }, ['idempotency_key']],
    ['a time without a zone', { type: 'a', data: 1, deliver_at: '2030-01-01T00:00:00' }, ['deliver_at']],
    ['an invalid time', { type: 'a', data: 1, deliver_at: '2030-13-01T00:00:00Z' }, ['deliver_at']],
    ['a channel that is empty', { type: 'a', data: 1, channels: [''] }, ['channels']],
    ['too many channels', { type: 'a', data: 1, channels: Array(51).fill('c') }, ['channels']],
    ['an invalid id', { type: 'a', data: 1, endpoint_ids: ['ep_x'] }, ['endpoint_ids[0]']],
    ['a reserved header', { type: 'a', data: 1, headers: { 'Webhook-Id': 'x' } }, ['headers.Webhook-Id']],
    ['a header with a line break', { type: 'a', data: 1, headers: { A: 'x\r\nB: y' } }, ['headers.A']],
    ['a header twice', { type: 'a', data: 1, headers: { 'X-A': '1', 'x-a': '2' } }, ['headers.x-a']],
    ['a header that is a number', { type: 'a', data: 1, headers: { A: 1 } }, ['headers.A']],
    ['several mistakes', { type: '', data: 1, channels: 'x' }, ['type', 'channels']],
    ['ACC-7: unknown fields', { type: 'a', data: 1, dat: 2, typ: 3 }, ['dat', 'typ']],
  ])('is refused with %s, naming the field', (_, body, paths) => {
    const problem = problemOf(() => read(body));
    expect([problem.code, pathsOf(problem)]).toEqual(['invalid', paths]);
  });

  it('ACC-7: is rejected if its data is too large', () => {
    expect(read({ type: 'a', data: 'x'.repeat(98) }).data).toHaveLength(100);
    expect(problemOf(() => read({ type: 'a', data: 'x'.repeat(99) })).code).toBe('too_large');
    expect(problemOf(() => read({ type: 'a', data: 'é'.repeat(50) })).code).toBe('too_large');
  });

  it('ACC-7: is rejected if it is nested too deeply', () => {
    expect(read(`{"type":"a","data":${'['.repeat(5)}${']'.repeat(5)}}`).data).toHaveLength(10);
    expect(pathsOf(problemOf(() => read(`{"type":"a","data":${'['.repeat(6)}${']'.repeat(6)}}`)))).toEqual([
      'data',
    ]);
  });

  it.each(['', '{', '{"type":"a","data":1}}', '{"type":"a","type":"b","data":1}', 'x'])(
    'ACC-7: is refused if it is not JSON, with a position: %s',
    (text) => {
      const problem = problemOf(() => read(text));
      expect(problem.code).toBe('malformed_json');
      expect(problem.message).toMatch(/line 1, column \d+/);
    },
  );

  it('is rejected if it is not UTF-8', () => {
    const body = Buffer.concat([Buffer.from('{"type":"a","data":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(problemOf(() => readEvent(body, limits, context)).code).toBe('malformed_json');
  });

  it('must belong to the tenant of its API key', () => {
    expect(read({ type: 'a', data: 1 }, { keyTenant: 'acme' }).tenant).toBe('acme');
    expect(read({ type: 'a', data: 1, tenant: 'acme' }, { keyTenant: 'acme' }).tenant).toBe('acme');
    expect(problemOf(() => read({ type: 'a', data: 1, tenant: 'b' }, { keyTenant: 'acme' })).code).toBe(
      'forbidden',
    );
  });

  it('ACC-4: takes its idempotency key from the body or the header, which must agree', () => {
    const withHeader = { idempotencyKey: 'k' };
    expect(read({ type: 'a', data: 1 }, withHeader).idempotencyKey).toBe('k');
    expect(read({ type: 'a', data: 1, idempotency_key: 'k' }, withHeader).idempotencyKey).toBe('k');
    expect(
      pathsOf(problemOf(() => read({ type: 'a', data: 1, idempotency_key: 'other' }, withHeader))),
    ).toEqual(['idempotency_key']);
  });

  it('throws nothing but a Problem, whatever the body is', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.jsonValue(), (bytes, value) => {
        for (const body of [Buffer.from(bytes), Buffer.from(JSON.stringify(value))]) {
          try {
            readEvent(body, limits, context);
          } catch (error) {
            expect(error).toBeInstanceOf(Problem);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a body with very many fields', () => {
  const manyFields = (count: number) => `{${Array.from({ length: count }, (_, n) => `"x${n}":0`).join(',')}}`;
  const large = { maxEventBytes: 1000, maxNesting: 5 };
  const cpuMs = (work: () => void) => {
    const startedAt = process.threadCpuUsage();
    work();
    return process.threadCpuUsage(startedAt).user / 1000;
  };

  it('ACC-7: names ten unknown fields, and says how many more there are', () => {
    const problem = problemOf(() => read(manyFields(50)));
    expect(problem.errors).toHaveLength(10);
    expect(problem.message).toMatch(/^Unknown fields: x0, .*, x9 and 40 more\.$/);
  });

  it('shortens names, and so the answer', () => {
    const problem = problemOf(() => read({ ['n'.repeat(100_000)]: 1 }));
    expect(JSON.stringify(problem).length).toBeLessThan(1000);
  });

  it('stops early', () => {
    const body = manyFields(500_000);
    const time = cpuMs(() => {
      expect(problemOf(() => read(body)).message).toBe('body: must have at most 100 fields');
    });
    expect(time).toBeLessThan(900);
  });

  it('names the line of a mistake behind ten million line breaks', () => {
    const body = Buffer.concat([Buffer.alloc(10_000_000, '\n'), Buffer.from('x')]);
    const { message } = problemOf(() => readEvent(body, large, context));
    expect(message).toContain('line 10000001, column 1 ');
  });
});
