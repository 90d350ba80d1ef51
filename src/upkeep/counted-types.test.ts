import { expect, test } from 'vitest';
import { CountedTypes } from './counted-types.ts';

const NOON = 500_000 * 3_600_000;

test('a type that has totals keeps them, new types take the free places, and the rest is counted as `other`', () => {
  const types = new CountedTypes(2);
  const hours = types.findMissingHours([{ at: NOON + 1, entry: { accepted: [['acme', 'c.d', 1]] } }]);
  expect(hours).toEqual([
    { tenant: '', at: NOON },
    { tenant: 'acme', at: NOON },
  ]);
  types.addHours(hours, [{ tenant: 'acme', at: NOON, type: 'x.y' }]);
  const nameOf = (type: string): string => types.nameOf('acme', NOON, type);
  expect(['c.d', 'x.y', 'z.z', 'c.d'].map(nameOf)).toEqual(['c.d', 'x.y', 'other', 'c.d']);
});

test('asks for an hour of a tenant only once', () => {
  const types = new CountedTypes(2);
  const rows = [{ at: NOON, entry: { dead: [['one', 'acme', 'c.d', 1] as const] } }];
  types.addHours(types.findMissingHours(rows), []);
  expect(types.findMissingHours(rows)).toEqual([]);
});
