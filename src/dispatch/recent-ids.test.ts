import { expect, test } from 'vitest';
import { RecentIds } from './recent-ids.ts';

test('keeps ids for at least the given time and drops them later', () => {
  let now = 0;
  const ids = new RecentIds({ now: () => now, monotonic: () => now, after: () => () => {} }, 1000);
  ids.add('a');
  now = 999;
  ids.add('b');
  now = 1000;
  ids.add('c');
  expect(['a', 'b', 'c', 'd'].map((id) => ids.has(id))).toEqual([true, true, true, false]);
  now = 1998;
  ids.add('d');
  expect(ids.has('b')).toBe(true);
  now = 2000;
  ids.add('e');
  expect(['a', 'b', 'c', 'd', 'e'].map((id) => ids.has(id))).toEqual([false, false, true, true, true]);
  now = 9000;
  ids.add('f');
  expect(['c', 'd', 'e', 'f'].map((id) => ids.has(id))).toEqual([false, false, false, true]);
});
