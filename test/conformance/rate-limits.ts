import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/domain/clock.ts';
import type { RateLimit } from '../../src/domain/endpoint.ts';
import type { RateLimits } from '../../src/ports/rate-limits.ts';

const LIMIT: RateLimit = { perSecond: 2, burst: 4 };

/** Both clocks are at `nowMs`, and timers are not needed. */
export type CreateRateLimits = (limit: RateLimit, clock: Clock) => RateLimits;

export function describeRateLimits(name: string, create: CreateRateLimits): void {
  describe(`the rate limits in ${name}`, () => {
    let nowMs = 0;
    let limits: RateLimits;
    const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };
    beforeEach(() => {
      nowMs = 1_000_000;
      limits = create(LIMIT, clock);
    });
    const takeMany = (key: string, times: number): number[] =>
      Array.from({ length: times }, () => limits.take(key));

    it('allows a burst at once, and then returns how long to wait', () => {
      expect(takeMany('a', 5)).toEqual([0, 0, 0, 0, 0.5]);
    });

    it('allows the next call after exactly the returned time', () => {
      takeMany('a', 4);
      nowMs += 400;
      expect(limits.take('a')).toBeCloseTo(0.1, 2);
      nowMs += 100;
      expect(takeMany('a', 2)).toEqual([0, 0.5]);
    });

    it('takes no tokens when it refuses', () => {
      takeMany('a', 20);
      nowMs += 1_000;
      expect(takeMany('a', 3)).toEqual([0, 0, 0.5]);
    });

    it('saves up at most a burst', () => {
      takeMany('a', 4);
      nowMs += 3_600_000;
      expect(takeMany('a', 5)).toEqual([0, 0, 0, 0, 0.5]);
    });

    it('has a bucket for each key', () => {
      takeMany('a', 4);
      expect(limits.take('b')).toBe(0);
    });

    it('takes several tokens at once or none', () => {
      expect(limits.take('a', 3)).toBe(0);
      expect(limits.take('a', 3)).toBeCloseTo(1, 2);
      expect(limits.take('a', 1)).toBe(0);
    });
  });
}
