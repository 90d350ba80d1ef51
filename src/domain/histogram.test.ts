import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addCounts,
  bucketOf,
  HISTOGRAM_BUCKETS,
  increment,
  PERCENTILE_ERROR,
  percentileOf,
} from './histogram.ts';

const DAY_MS = 86_400_000;
/** From fractions of a millisecond to days, evenly on a logarithmic scale. */
const time = fc.double({ min: -3, max: Math.log2(7 * DAY_MS), noNaN: true }).map((exponent) => 2 ** exponent);
const times = fc.array(time, { minLength: 1, maxLength: 300 });

function countsOf(values: readonly number[]): number[] {
  const counts: number[] = [];
  for (const value of values) increment(counts, bucketOf(value));
  return counts;
}

describe('a histogram of durations', () => {
  test('every duration has a bucket, and a longer one never has a smaller bucket', () => {
    fc.assert(
      fc.property(times, (values) => {
        const buckets = values.toSorted((a, b) => a - b).map(bucketOf);
        expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
        expect(buckets.every((bucket) => bucket >= 0 && bucket < HISTOGRAM_BUCKETS)).toBe(true);
      }),
    );
    expect(bucketOf(0)).toBe(0);
    expect(bucketOf(1e12)).toBe(HISTOGRAM_BUCKETS - 1);
  });

  test('percentiles are within 9.1 % or half a millisecond of the true ones, and never decrease', () => {
    expect(PERCENTILE_ERROR).toBeLessThan(0.091);
    const shares = [0.01, 0.5, 0.95, 0.99, 1];
    fc.assert(
      fc.property(times, (values) => {
        const counts = countsOf(values);
        const sorted = values.toSorted((a, b) => a - b);
        const found = shares.map((p) => percentileOf(counts, p)!);
        expect(found).toEqual(found.toSorted((a, b) => a - b));
        for (const [index, p] of shares.entries()) {
          const exact = sorted[Math.max(1, Math.ceil(values.length * p)) - 1]!;
          const allowed = exact < 1 ? 0.5 : exact * PERCENTILE_ERROR * (1 + 1e-9);
          expect(Math.abs(found[index]! - exact)).toBeLessThanOrEqual(allowed);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('histograms of different lengths add up', () => {
    fc.assert(
      fc.property(times, times, (one, other) => {
        const sum = countsOf(one);
        addCounts(sum, countsOf(other));
        expect(sum).toEqual(countsOf([...one, ...other]));
      }),
    );
    expect(percentileOf([], 0.5)).toBeNull();
    expect(percentileOf([0, 0], 0.5)).toBeNull();
  });
});
