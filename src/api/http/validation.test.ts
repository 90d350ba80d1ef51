import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import type { Problem } from '../../domain/problem.ts';
import { compileSchema, Nullable } from './validation.ts';

const check = compileSchema(
  Type.Object(
    {
      name: Type.Optional(Type.String()),
      list: Type.Optional(Nullable(Type.Array(Type.Enum(['a', 'b']), { maxItems: 5, uniqueItems: true }))),
      items: Type.Optional(
        Type.Array(Type.Object({ a: Type.Optional(Type.String()) }, { additionalProperties: false })),
      ),
      inner: Type.Optional(Type.Object({ a: Type.Optional(Type.String()) }, { additionalProperties: false })),
    },
    { additionalProperties: false },
  ),
  'body',
);
const problemOf = (body: unknown): Problem => (check(body) as { error: Problem }).error;
const manyFields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`x${n}`, 0]));

describe('a body with far too many entries', () => {
  it.each([
    ['unknown fields', manyFields(100_000), /^Unknown fields: x0, .*, x9 and 99990 more\.$/],
    ['unknown fields of a part', { inner: manyFields(100_000) }, /^Unknown fields: inner\.x0, .* more\.$/],
    [
      'entries of a list',
      { list: Array(100_000).fill('a') },
      /^list: must have at most 5 entries, has 100000$/,
    ],
  ])('is refused at once: %s', (_what, body, message) => {
    const startedAt = process.threadCpuUsage();
    const problem = problemOf(body);
    expect(process.threadCpuUsage(startedAt).user / 1000).toBeLessThan(300);
    expect(problem).toMatchObject({ code: 'invalid', message: expect.stringMatching(message) });
    expect(problem.errors.length).toBeGreaterThan(0);
    expect(problem.errors.length).toBeLessThanOrEqual(10);
  });

  it.each([9, 20, 30])('always has errors, also with %i unknown fields', (count) => {
    const problem = problemOf(manyFields(count));
    expect(problem.errors.length).toBeGreaterThan(0);
    expect(problem.message).toContain('x0');
  });

  it('has errors for unknown fields of an entry of a list', () => {
    const problem = problemOf({ items: [manyFields(30)] });
    expect(problem.errors[0]).toMatchObject({ message: 'is not a field of this request' });
    expect(problem.message).toContain('items[0].x0');
  });

  it('names all errors if there are only a few entries too many', () => {
    const paths = problemOf({ name: 1, list: ['a', 'b', 'c', 'a', 'b', 'a'] }).errors.map(({ path }) => path);
    expect(paths).toContain('name');
  });
});
