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
          expect(worstExcess(taken, limit.perSecond, capacity)).toBeLessThanOrEqual(1e-6);
        },
      ),
    );
  });

  it('DSP-3: nor when what reserved a token has to wait before it leaves, or does not leave', () => {
    const step = fc.record({
      pause: fc.integer({ min: 0, max: 400 }),
      action: fc.constantFrom('reserve', 'reserve', 'spend', 'spend all', 'give back'),
    });
    fc.assert(
      fc.property(limits, fc.array(step, { maxLength: 200, size: 'max' }), (limit, steps) => {
        const capacity = Math.max(1, limit.burst);
        const bucket = new TokenBucket(limit, 0, capacity);
        const left: number[] = [];
        let waiting = 0;
        let now = 0;
        for (const { pause, action } of steps) {
          now += pause;
          if (action === 'reserve') {
            if (bucket.reserve(now)) waiting += 1;
          } else if (action === 'give back') {
            if (waiting > 0) bucket.giveBack();
            waiting = Math.max(0, waiting - 1);
          } else {
            for (let turns = action === 'spend' ? Math.min(1, waiting) : waiting; turns > 0; turns -= 1) {
              bucket.spend(now);
              left.push(now);
              waiting -= 1;
            }
          }
        }
        expect(worstExcess(left, limit.perSecond, capacity)).toBeLessThanOrEqual(1e-6);
      }),
    );
  });

  it('a reservation that is slow to leave costs no more than its place', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 3 }, 0, 3);
    expect(bucket.reserve(0)).toBe(true);
    expect([1, 2, 3].map(() => bucket.reserve(60_000))).toEqual([true, true, false]);
    for (let n = 0; n < 3; n += 1) bucket.spend(60_000);
    expect(bucket.msUntilNext(60_000)).toBe(100);
  });

  it('gives a token back, but never beyond its burst', () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 2 }, 0, 2);
    expect([1, 2, 3].map(() => bucket.reserve(0))).toEqual([true, true, false]);
    expect(bucket.tryTake(999)).toBe(false);
    bucket.giveBack();
    bucket.giveBack();
    expect([1, 2, 3].map(() => bucket.tryTake(10_000))).toEqual([true, true, false]);
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

/** By how many the busiest window is over what burst and rate give it. */
function worstExcess(times: readonly number[], perSecond: number, capacity: number): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (let first = 0; first < times.length; first += 1) {
    for (let last = first; last < times.length; last += 1) {
      const seconds = (times[last]! - times[first]!) / 1000;
      worst = Math.max(worst, last - first + 1 - (capacity + perSecond * seconds));
    }
  }
  return worst;
}
