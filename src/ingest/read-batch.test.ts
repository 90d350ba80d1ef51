import { describe, expect, it } from 'vitest';
import { Problem } from '../domain/problem.ts';
import { readBatch } from './read-batch.ts';
import type { ReadContext } from './read-event.ts';

const limits = { maxEventBytes: 100, maxNesting: 5 };
const context: ReadContext = { keyTenant: null, idempotencyKey: null, isReservedHeader: () => false };

const read = (text: string) => readBatch(Buffer.from(text), limits, context, 3);

async function problemOf(text: string): Promise<Problem> {
  const error = await read(text).then(
    () => new Error('it was accepted'),
    (error: unknown) => error,
  );
  if (error instanceof Problem) return error;
  throw error;
}

describe('ACC-3: a batch', () => {
  it('has a result per item: an invalid item does not fail the others', async () => {
    const results = await read('{"events":[{"type":"a","data":1},{"type":"!","data":1},7]}');
    expect(results[0]).toMatchObject({ type: 'a', data: Buffer.from('1') });
    expect(results.slice(1).map((result) => (result as Problem).code)).toEqual(['invalid', 'invalid']);
  });

  it('allows each event the same nesting as outside of a batch', async () => {
    const [deep, deeper, next] = await read(
      `{"events":[{"type":"a","data":${'['.repeat(5)}${']'.repeat(5)}},{"type":"a","data":${'['.repeat(6)}${']'.repeat(6)}},{"type":"b","data":1}]}`,
    );
    expect(deep).toMatchObject({ type: 'a' });
    expect(deeper).toBeInstanceOf(Problem);
    expect(next).toMatchObject({ type: 'b' });
  });

  it('gives each event a key of its own if the request has one', async () => {
    const body = Buffer.from(
      '{"events":[{"type":"a","data":1},{"type":"a","data":1,"idempotency_key":"mine"}]}',
    );
    const events = await readBatch(body, limits, { ...context, idempotencyKey: 'order-1' }, 3);
    expect(events).toMatchObject([{ idempotencyKey: 'order-1#0' }, { idempotencyKey: 'mine' }]);
  });

  it.each([
    '{"events":[]}',
    '{"events":{}}',
    '{}',
    '[]',
    '{"events":[{"type":"a","data":1}],"x":1}',
    '{"events":[1,2,3,4]}',
  ])('is refused as a whole: %s', async (text) => {
    expect((await problemOf(text)).code).toBe('invalid');
  });

  it.each([
    '',
    '{"events":[{"type":"a","data":1},]}',
    '{"events":[{"type":"a","data":1}',
    '{"events":[{"type":"a","data":1,"data":2}]}',
    '{"events":[],"events":[]}',
    '{"events":[]} x',
  ])('is rejected as a whole if it is not JSON, or has a field twice: %s', async (text) => {
    expect((await problemOf(text)).code).toBe('malformed_json');
  });

  it('refuses an event that is larger than one that is sent alone may be', async () => {
    const headers = `{${Array.from({ length: 200_000 }, (_, n) => `"x${n}":0`).join(',')}}`;
    const [item, other] = await read(
      `{"events":[{"type":"a","data":1,"headers":${headers}},{"type":"a","data":1}]}`,
    );
    expect(item).toMatchObject({ code: 'too_large', errors: [{ path: 'body' }] });
    expect(other).toMatchObject({ type: 'a' });
  });

  it('refuses an object with very many fields before it reads them', async () => {
    const body = `{${Array.from({ length: 500_000 }, (_, n) => `"x${n}":0`).join(',')}}`;
    const [item] = await read(`{"events":[${body}]}`);
    expect((item as Problem).message).toBe('body: must have at most 100 fields');
    expect((await problemOf(body)).message).toBe('body: must have at most 100 fields');
  });
});

const MIB = 1024 * 1024;
const values = (bytes: number) => `[${'1,'.repeat(bytes / 2)}1]`;
const EVENT = '{"type":"a","data":1}';

it.each([
  [
    'in one event that is too large',
    `{"events":[${EVENT},{"type":"a","data":${values(4 * MIB)}},${EVENT}]}`,
    3,
  ],
  [
    'in an event that is nested too deeply',
    `{"events":[${EVENT},{"data":[${values(2 * MIB)},[[[[[]]]]]]},${EVENT}]}`,
    3,
  ],
  ['in an item that is not an event', `{"events":[${EVENT},${values(4 * MIB)},${EVENT}]}`, 3],
  ['in many events', `{"events":[${Array(160_000).fill(EVENT).join(',')}]}`, 160_000],
  ['beyond the limit of events', `{"events":[${values(4 * MIB).slice(1, -1)}]}`, null],
  ['in an unknown field', `{"x":${values(4 * MIB)},"events":[${EVENT}]}`, null],
])('leaves time to others while it reads megabytes of small values %s', async (_, text, count) => {
  let turns = 0;
  let hasEnded = false;
  const countTurns = (): void => {
    turns += 1;
    if (!hasEnded) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const maxEvents = count ?? 1_000;
  const result = await readBatch(Buffer.from(text), limits, context, maxEvents).catch(
    (error: unknown) => error,
  );
  hasEnded = true;
  if (count === null) expect(result).toMatchObject({ code: 'invalid' });
  else expect(result).toHaveLength(count);
  if (count === 3) expect(result).toMatchObject([{ type: 'a' }, {}, { type: 'a' }]);
  // 128 KiB per turn.
  expect(turns).toBeGreaterThan(20);
});
