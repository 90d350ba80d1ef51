import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RetryConfig, resolveRetry } from './endpoint-config.ts';
import {
  delayMsBefore,
  delaySeconds,
  isTransientStatus,
  type Jitter,
  jitters,
  maxAttempts,
  type RetryPreset,
  retryPresets,
  withJitter,
} from './retry.ts';

const delays = (config: RetryConfig): number[] => {
  const policy = resolveRetry(config);
  return Array.from({ length: maxAttempts(policy) }, (_, index) => delaySeconds(policy, index + 1));
};

/** A seeded random generator, so that every run has the same numbers. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('RTY-2: the schedule', () => {
  it('is seven attempts by default', () => {
    expect(delays({})).toEqual([0, 30, 300, 1800, 7200, 28800, 86400]);
  });

  it.each<[RetryPreset, number[]]>([
    ['default', [0, 30, 300, 1800, 7200, 28800, 86400]],
    ['standard-webhooks', [0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]],
    ['minute', [0, 60, 300, 1800, 7200, 28800, 86400]],
    ['fast', [1, 5, 30, 300, 1800, 7200]],
    ['patient', [0, 300, 1800, 7200, 18000, 36000]],
    ['day', [0, 30, 120, 600, 1800, 3600, 14400, 28800]],
  ])('has the preset %s', (preset, expected) => {
    expect(retryPresets[preset]).toEqual(expected);
    expect(delays({ preset })).toEqual(expected);
  });

  it('is an explicit list, with fractions', () => {
    expect(delays({ schedule: [0.25, 1.5] })).toEqual([0.25, 1.5]);
  });

  it('is exponential: delay(n) = min(base · factor^(n-1), max) before retry n', () => {
    expect(delays({ base: 2, factor: 3, max: 50, attempts: 6 })).toEqual([0, 2, 6, 18, 50, 50]);
  });

  it('grows up to its maximum and stays there, also after ten thousand attempts', () => {
    fc.assert(
      fc.property(
        fc.record({
          base: fc.double({ min: 0.001, max: 1000, noNaN: true }),
          factor: fc.double({ min: 1, max: 10, noNaN: true }),
          max: fc.integer({ min: 1, max: 86_400 }),
        }),
        fc.integer({ min: 2, max: 10_000 }),
        (config, number) => {
          const policy = resolveRetry({ ...config, attempts: 10_000 });
          const delay = delaySeconds(policy, number);
          expect(delay).toBeGreaterThan(0);
          expect(delay).toBeLessThanOrEqual(config.max);
          expect(delaySeconds(policy, number + 1)).toBeGreaterThanOrEqual(delay);
        },
      ),
    );
  });

  it('has a maximum age that leaves time for the last attempt, for any jitter', () => {
    for (const preset of Object.keys(retryPresets) as RetryPreset[]) {
      const policy = resolveRetry({ preset });
      let longestMs = 0;
      for (let n = 1; n <= maxAttempts(policy); n += 1) longestMs += delayMsBefore(policy, n, () => 1);
      expect(policy.maxAgeSeconds * 1000).toBeGreaterThanOrEqual(longestMs);
      expect(policy.maxAgeSeconds).toBeGreaterThanOrEqual(72 * 3600);
    }
  });
});

describe('RTY-3: jitter', () => {
  const bounds: Record<Jitter, [number, number]> = {
    full: [0, 1],
    equal: [0.5, 1],
    proportional: [0.9, 1.1],
    none: [1, 1],
  };

  it.each(jitters)('%s stays within its bounds', (jitter) => {
    const [low, high] = bounds[jitter];
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e6, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        (seconds, random) => {
          const delay = withJitter(seconds, jitter, () => random);
          expect(delay).toBeGreaterThanOrEqual(seconds * low - 1e-9 * seconds);
          expect(delay).toBeLessThanOrEqual(seconds * high + 1e-9 * seconds);
        },
      ),
    );
  });

  it('is proportional for lists and full for exponential by default', () => {
    expect(resolveRetry({}).jitter).toBe('proportional');
    expect(resolveRetry({ base: 1 }).jitter).toBe('full');
    expect(resolveRetry({ base: 1, jitter: 'none' }).jitter).toBe('none');
  });

  it('spreads a synchronized outage: the busiest second has at most 3 times the mean over the window', () => {
    const failed = 1_000;
    const table: string[] = [];
    for (const seconds of [30, 300]) {
      for (const jitter of jitters) {
        const random = seeded(seconds);
        const times = Array.from({ length: failed }, () => withJitter(seconds, jitter, random));
        const perSecond = new Map<number, number>();
        for (const time of times) perSecond.set(Math.floor(time), (perSecond.get(Math.floor(time)) ?? 0) + 1);
        const busiest = Math.max(...perSecond.values());
        // Without jitter there is no window: use the narrowest window of the others.
        const [low, high] = bounds[jitter === 'none' ? 'proportional' : jitter];
        const windowSeconds = Math.round(seconds * (high - low));
        const mean = failed / windowSeconds;
        const cells = [`${seconds} s`, jitter, `${windowSeconds} s`, mean.toFixed(1), busiest];
        table.push([...cells, (busiest / mean).toFixed(2)].map((cell) => String(cell).padStart(13)).join(''));
        if (jitter === 'none') expect(busiest).toBe(failed);
        else expect(busiest).toBeLessThanOrEqual(3 * mean);
      }
    }
    const head = ['delay', 'jitter', 'window', 'mean/s', 'busiest s', 'ratio']
      .map((cell) => cell.padStart(13))
      .join('');
    process.stdout.write(`1,000 deliveries that failed in the same second:\n${head}\n${table.join('\n')}\n`);
  });
});

describe('RTY-1: transient and permanent statuses', () => {
  it('an exact code precedes a class, and transient precedes permanent', () => {
    const policy = resolveRetry({ permanent: ['4xx', '5xx', 503], transient: [404, '5xx', 409] });
    expect(isTransientStatus(policy, 404)).toBe(true);
    expect(isTransientStatus(policy, 400)).toBe(false);
    expect(isTransientStatus(policy, 500)).toBe(true);
    expect(isTransientStatus(policy, 503)).toBe(false);
    expect(isTransientStatus(policy, 302)).toBe(true);
  });
});
