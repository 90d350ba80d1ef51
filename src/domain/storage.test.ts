import { expect, test } from 'vitest';
import { DAY_MS } from './retention.ts';
import { daysUntilFull, growthPerDay } from './storage.ts';

const NOW = 1000 * DAY_MS;
const week = (weeksAgo: number, bytes: number) => ({
  fromMs: NOW - DAY_MS / 2 - weeksAgo * 7 * DAY_MS,
  toMs: NOW - DAY_MS / 2 - (weeksAgo - 1) * 7 * DAY_MS,
  bytes,
});

test('the rate comes from the newest partitions that cover a day', () => {
  // Half a day of this week, and all of the last one; older ones do not count.
  const rate = growthPerDay([week(0, 500), week(1, 7000), week(2, 1e9), week(-1, 0)], 1, NOW);
  expect(rate).toBeCloseTo(7500 / 7.5);
});

test('the rate counts the time since the first event, and is null for less than an hour of data', () => {
  expect(growthPerDay([week(0, 100)], NOW - DAY_MS / 4, NOW)).toBeCloseTo(400);
  expect(growthPerDay([week(0, 100)], NOW - 60_000, NOW)).toBeNull();
  expect(growthPerDay([], null, NOW)).toBeNull();
});

test('there is no day on which the disk is full if retention stops the growth before', () => {
  const forecast = { freeBytes: 1000, bytesPerDay: 100 };
  expect(daysUntilFull({ ...forecast, growsForDays: null })).toBe(10);
  expect(daysUntilFull({ ...forecast, growsForDays: 20 })).toBe(10);
  expect(daysUntilFull({ ...forecast, growsForDays: 5 })).toBeNull();
  expect(daysUntilFull({ ...forecast, bytesPerDay: 0, growsForDays: null })).toBeNull();
});
