import { expect, it } from 'vitest';
import { parseRetryAfter } from './retry-after.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');

it.each([
  ['0', 0],
  ['120', 120_000],
  [' 7 ', 7000],
  ['Sun, 01 Mar 2026 12:00:30 GMT', 30_000],
  ['Sunday, 01-Mar-26 12:00:30 GMT', 30_000],
  ['Sun Mar  1 12:00:30 2026 GMT', 30_000],
  ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
  ['', null],
  ['-5', null],
  ['1.5', null],
  ['soon', null],
  ['Sunday', null],
  ['99999999999', null],
  ['2026-03-01T12:00:30Z', null],
  [undefined, null],
])('Retry-After: %s', (value, expected) => {
  expect(parseRetryAfter(value, NOW)).toBe(expected);
});
