import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RateLimit } from './endpoint.ts';
import { Pace } from './pace.ts';

/** Takes every turn, and starts each request when it is prepared and allowed. Returns the start times. */
function run(limit: RateLimit, untilMs: number, readyAfter: (turn: number, now: number) => number): number[] {
  const pace = new Pace(limit, 0, 0);
  const starts: number[] = [];
  let waiting: number[] = [];
  let turns = 0;
  for (let now = 0; now < untilMs; now += 1) {
    while (pace.takeTurn(now)) waiting.push(now + readyAfter(turns++, now));
    waiting = waiting.filter((at) => {
      const wait = at > now ? at - now : pace.tryStart(now);
      if (wait === 0) starts.push(now);
      return wait > 0;
    });
  }
  return starts;
}

/** By how much the busiest window exceeds what burst and rate allow. */
function worstExcess(times: readonly number[], { perSecond, burst }: RateLimit): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (let first = 0; first < times.length; first += 1) {
    for (let last = first; last < times.length; last += 1) {
      const seconds = (times[last]! - times[first]!) / 1000;
      worst = Math.max(worst, last - first + 1 - (Math.max(1, burst) + perSecond * seconds));
    }
  }
  return worst;
}

const limits = fc.record({
  perSecond: fc.double({ min: 1, max: 200, noNaN: true }),
  burst: fc.double({ min: 0.5, max: 20, noNaN: true }),
});

test('DSP-3: at most burst + rate · t requests start, however long their preparation takes', () => {
  const delays = fc.array(fc.integer({ min: 0, max: 800 }), { minLength: 1, maxLength: 50 });
  fc.assert(
    fc.property(limits, delays, (limit, times) => {
      const starts = run(limit, 2_000, (turn) => times[turn % times.length]!);
      expect(worstExcess(starts, limit)).toBeLessThanOrEqual(1e-6);
    }),
    { numRuns: 50 },
  );
});

test('DSP-3: the same holds if all of them were delayed at once', () => {
  const limit = { perSecond: 10, burst: 4 };
  const starts = run(limit, 4_000, (_, now) => Math.max(0, 2_000 - now));
  expect(starts.filter((at) => at === 2_000)).toHaveLength(4);
  expect(worstExcess(starts, limit)).toBeLessThanOrEqual(1e-6);
});

test.each([
  [100, 1, 20],
  [100, 1, 5],
  [50, 1, 20],
  [100, 2, 50],
  [100, 100, 50],
  [7, 1, 400],
])(
  'a rate of %i per second with a burst of %i is reached although each payload takes %i ms to load',
  (perSecond, burst, ms) => {
    const starts = run({ perSecond, burst }, 10_000, () => ms);
    expect(starts.length).toBeGreaterThanOrEqual(10 * perSecond * 0.9);
  },
);
