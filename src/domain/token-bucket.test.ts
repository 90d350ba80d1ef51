import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

const limits = fc.record({
  perSecond: fc.double({ min: 0.1, max: 500, noNaN: true }),
  burst: fc.double({ min: 0.1, max: 50, noNaN: true }),
});

describe('a token bucket', () => {
  it('DSP-3: allows at most burst + rate · t in any window', () => {
    fc.assert(
      fc.property(
        limits,
        fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200, size: 'max' }),
        (limit, pauses) => {
          const capacity = Math.max(1, limit.burst);
          const bucket = new TokenBucket(limit, 0, capacity);
          const taken: number[] = [];
          let now = 0;
          for (const pause of pauses) {
            now += pause;
            if (bucket.tryTake(now)) taken.push(now);
          }
          let worst = Number.NEGATIVE_INFINITY;
          for (let first = 0; first < taken.length; first += 1) {
            for (let last = first; last < taken.length; last += 1) {
              const seconds = (taken[last]! - taken[first]!) / 1000;
              worst = Math.max(worst, last - first + 1 - (capacity + limit.perSecond * seconds));
            }
          }
          expect(worst).toBeLessThanOrEqual(1e-6);
        },
      ),
    );
  });

  it('takes a token back, but never beyond its burst', () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 2 }, 0, 2);
    bucket.giveBack();
    bucket.giveBack();
    expect([1, 2, 3].map(() => bucket.tryTake(0))).toEqual([true, true, false]);
    bucket.giveBack();
    expect(bucket.tryTake(0)).toBe(true);
  });

  it('does not fill up when the clock goes back', () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 1 }, 10_000, 0);
    expect(bucket.tryTake(5_000)).toBe(false);
    expect(bucket.tryTake(10_500)).toBe(false);
    expect(bucket.tryTake(11_000)).toBe(true);
  });

  it('allows one at a time if its burst is below one', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 0.5 }, 0, 0);
    expect(bucket.tryTake(99)).toBe(false);
    expect(bucket.tryTake(100)).toBe(true);
  });
});
