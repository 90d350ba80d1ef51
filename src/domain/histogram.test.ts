import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addCounts, bucketOf, HISTOGRAM_BUCKETS, percentileOf } from './histogram.ts';

const times = fc.array(fc.double({ min: 0, max: 60_000, noNaN: true }), { minLength: 1, maxLength: 200 });

function countsOf(values: readonly number[]): number[] {
  const counts: number[] = [];
  for (const value of values) {
    const bucket = bucketOf(value);
    while (counts.length <= bucket) counts.push(0);
    counts[bucket]! += 1;
  }
  return counts;
}

describe('a histogram of response times', () => {
  test('every time has a bucket, later ones never an earlier one', () => {
    fc.assert(
      fc.property(times, (values) => {
        const buckets = values.toSorted((a, b) => a - b).map(bucketOf);
        expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
        expect(buckets.every((bucket) => bucket >= 0 && bucket < HISTOGRAM_BUCKETS)).toBe(true);
      }),
    );
    expect(bucketOf(0)).toBe(0);
    expect(bucketOf(1e9)).toBe(HISTOGRAM_BUCKETS - 1);
  });

  test('a percentile lies within a fifth of a time that was measured, and they never fall', () => {
    fc.assert(
      fc.property(times, (values) => {
        const counts = countsOf(values);
        const found = [0.01, 0.5, 0.95, 0.99, 1].map((p) => percentileOf(counts, p)!);
        expect(found).toEqual(found.toSorted((a, b) => a - b));
        for (const percentile of found) {
          expect(values.some((value) => Math.abs(value - percentile) <= Math.max(1, value * 0.2))).toBe(true);
        }
      }),
    );
  });

  test('hours add up, whatever their lengths', () => {
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
