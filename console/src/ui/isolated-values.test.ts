import { expect, it } from 'vitest';
import { findIsolated } from './isolated-values.ts';

it('findIsolated finds the values that no line would show', () => {
  expect(findIsolated([1, null, 2, 3, null, 4, null])).toEqual([0, 5]);
  expect(findIsolated([1, 2, 3])).toEqual([]);
  expect(findIsolated([null, 7])).toEqual([1]);
  expect(findIsolated([])).toEqual([]);
});
