import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/domain/clock.ts';
import type { RateLimit } from '../../src/domain/endpoint.ts';
import type { RateLimits } from '../../src/ports/rate-limits.ts';

const LIMIT: RateLimit = { perSecond: 2, burst: 4 };

export interface RateLimitsFixture {
  readonly limits: RateLimits;
  /** Resolves when nothing is under way. */
  settled?(): Promise<void>;
  close?(): Promise<void>;
}

/** Both clocks are at the same virtual time. */
export type CreateRateLimits = (
  limit: RateLimit,
  clock: Clock,
) => RateLimitsFixture | Promise<RateLimitsFixture>;

export function describeRateLimits(name: string, create: CreateRateLimits): void {
  describe(`the rate limits in ${name}`, () => {
    let nowMs = 0;
    let timers: { at: number; task: () => void }[] = [];
    let fixture: RateLimitsFixture;
    const clock: Clock = {
      now: () => nowMs,
      monotonic: () => nowMs,
      after(delayMs, task) {
        const timer = { at: nowMs + delayMs, task };
        timers.push(timer);
        return () => {
          timers = timers.filter((each) => each !== timer);
        };
      },
    };
    beforeEach(async () => {
      nowMs = 1_000_000;
      timers = [];
      fixture = await create(LIMIT, clock);
    });
    afterEach(() => fixture.close?.());

    const take = (key: string, count?: number): number => fixture.limits.take(key, count);
    const takeMany = (key: string, times: number): number[] => Array.from({ length: times }, () => take(key));
    /** Advances the time, and runs the timers that are due. */
    const pass = async (ms: number): Promise<void> => {
      const end = nowMs + ms;
      for (;;) {
        await fixture.settled?.();
        const next = timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers = timers.filter((timer) => timer !== next);
        nowMs = Math.max(nowMs, next.at);
        next.task();
      }
      nowMs = end;
    };

    it('allows a burst at once, and then returns how long to wait', async () => {
      expect(takeMany('a', 5)).toEqual([0, 0, 0, 0, 0.5]);
      await pass(0);
      expect(take('a')).toBe(0.5);
    });

    it('allows the next call after exactly the returned time', async () => {
      takeMany('a', 4);
      await pass(400);
      expect(take('a')).toBeCloseTo(0.1, 2);
      await pass(100);
      expect(takeMany('a', 2)).toEqual([0, 0.5]);
    });

    it('takes no tokens when it refuses', async () => {
      takeMany('a', 20);
      await pass(1_000);
      expect(takeMany('a', 3)).toEqual([0, 0, 0.5]);
    });

    it('saves up at most a burst', async () => {
      takeMany('a', 4);
      await pass(3_600_000);
      expect(takeMany('a', 5)).toEqual([0, 0, 0, 0, 0.5]);
    });

    it('has a bucket for each key', async () => {
      takeMany('a', 4);
      await pass(0);
      expect(take('b')).toBe(0);
    });

    it('takes several tokens at once or none', async () => {
      expect(take('a', 3)).toBe(0);
      await pass(0);
      expect(take('a', 3)).toBeCloseTo(1, 2);
      expect(take('a', 1)).toBe(0);
    });
  });
}
