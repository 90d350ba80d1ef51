import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

const limits = fc.record({
  perSecond: fc.double({ min: 0.1, max: 500, noNaN: true }),
  burst: fc.double({ min: 0.1, max: 50, noNaN: true }),
});

describe('a token bucket', () => {
  it('DSP-3: never lets more through than burst + rate · t, in any window', () => {
    fc.assert(
      fc.property(limits, fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 }), (limit, pauses) => {
        const capacity = Math.max(1, limit.burst);
        const bucket = new TokenBucket(limit, 0, capacity);
        const taken: number[] = [];
        let now = 0;
        for (const pause of pauses) {
          now += pause;
          if (bucket.tryTake(now)) taken.push(now);
        }
        for (let first = 0; first < taken.length; first += 1) {
          for (let last = first; last < taken.length; last += 1) {
            const seconds = (taken[last]! - taken[first]!) / 1000;
            expect(last - first + 1).toBeLessThanOrEqual(capacity + limit.perSecond * seconds + 1e-6);
          }
        }
      }),
    );
  });

  it('is open again when it said it would be, and not a moment too late', () => {
    fc.assert(
      fc.property(limits, fc.integer({ min: 1, max: 20 }), (limit, takes) => {
        const bucket = new TokenBucket(limit, 0, 0);
        let now = 0;
        for (let i = 0; i < takes; i += 1) {
          const waitMs = bucket.msUntilNext(now);
          expect(waitMs).toBeLessThanOrEqual(Math.ceil(1000 / limit.perSecond) + 1);
          now += waitMs;
          // Rounding may leave it a hair short of a whole token: then it asks for one more millisecond.
          if (!bucket.tryTake(now)) {
            expect(bucket.msUntilNext(now)).toBe(1);
            now += 1;
            expect(bucket.tryTake(now)).toBe(true);
          }
        }
      }),
    );
  });

  it('gives a token back, but never beyond its burst', () => {
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

  it('lets one through at a time if its burst is below one', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 0.5 }, 0, 0);
    expect(bucket.tryTake(99)).toBe(false);
    expect(bucket.tryTake(100)).toBe(true);
  });
});
