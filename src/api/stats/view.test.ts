import { expect, test } from 'vitest';
import { windowBetween } from './view.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.parse('2026-11-15T12:00:00Z');

/** The length of the points, in seconds, of a range that begins and ends this long ago. */
const pointsOf = (sinceMs: number, untilMs: number, minutesKeptMs: number): number =>
  windowBetween(NOW - sinceMs, NOW - untilMs, '24h', NOW, minutesKeptMs).seconds;

test('LIF-1: a range has minutes as long as they are kept, unless it is longer than a day', () => {
  const TWO_HOURS = 2 * HOUR_MS;
  expect(pointsOf(TWO_HOURS, 0, TWO_HOURS)).toBe(60);
  expect(pointsOf(3 * HOUR_MS, HOUR_MS, TWO_HOURS)).toBe(900);
  expect(pointsOf(27 * HOUR_MS, 0, TWO_HOURS)).toBe(3600);

  const MONTH = 30 * DAY_MS;
  expect(pointsOf(30 * DAY_MS, 29 * DAY_MS, MONTH)).toBe(60);
  expect(pointsOf(30 * DAY_MS, 28 * DAY_MS, MONTH)).toBe(3600);
  expect(pointsOf(31 * DAY_MS, 31 * DAY_MS - HOUR_MS, MONTH)).toBe(3600);
  expect(pointsOf(25 * HOUR_MS, 0, MONTH)).toBe(900);
});
