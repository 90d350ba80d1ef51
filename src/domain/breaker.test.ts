import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Breaker, type BreakerSettings, CLOSED_BREAKER, DEFAULT_BREAKER, type Signal } from './breaker.ts';

/** Fewer failures than by default, so that tests are short. */
const SETTINGS: BreakerSettings = { ...DEFAULT_BREAKER, consecutive: 5, failureRate: 0.5 };

const failTimes = (breaker: Breaker, times: number, now = 0): boolean[] =>
  Array.from({ length: times }, () => breaker.recordSignal('failure', now, false));

describe('HLT-1: the circuit breaker', () => {
  it('opens by default on the twentieth failure in a row, and not before', () => {
    const breaker = new Breaker(DEFAULT_BREAKER);
    expect(failTimes(breaker, 19)).not.toContain(true);
    expect(failTimes(breaker, 1)).toEqual([true]);
  });

  it('opens by default when 80 % of at least twenty requests fail, and not when half of them do', () => {
    const fail = (share: number): boolean => {
      const breaker = new Breaker(DEFAULT_BREAKER);
      for (let i = 1; i <= 100; i += 1)
        breaker.recordSignal(i % 10 < share * 10 ? 'failure' : 'success', i * 1000, false);
      return !breaker.allowsTraffic;
    };
    expect(fail(0.5)).toBe(false);
    expect(fail(0.7)).toBe(false);
    expect(fail(0.9)).toBe(true);
  });

  it('opens on the fifth failure in a row', () => {
    const breaker = new Breaker(SETTINGS);
    expect(failTimes(breaker, 5, 1000)).toEqual([false, false, false, false, true]);
    expect(breaker.record).toEqual({
      circuit: 'open',
      consecutiveFailures: 5,
      openedAt: 1000,
      cooldownMs: 30_000,
      nextProbeAt: 31_000,
    });
    expect(breaker.allowsTraffic).toBe(false);
  });

  it('restarts the count after a success, but not after a 4xx', () => {
    const breaker = new Breaker(SETTINGS);
    failTimes(breaker, 4);
    breaker.recordSignal('success', 0, false);
    failTimes(breaker, 4);
    breaker.recordSignal('neutral', 0, false);
    expect(breaker.allowsTraffic).toBe(true);
    expect(failTimes(breaker, 1)).toEqual([true]);
  });

  it('opens when half of twenty requests fail within ten minutes, but not half of nineteen', () => {
    const breaker = new Breaker(SETTINGS);
    for (let i = 0; i < 19; i += 1) {
      expect(breaker.recordSignal(i % 2 === 0 ? 'failure' : 'success', i * 1000, false)).toBe(false);
    }
    breaker.recordSignal('success', 19_000, false);
    expect(breaker.recordSignal('failure', 20_000, false)).toBe(true);
  });

  it('ignores outcomes that are older than its window', () => {
    const breaker = new Breaker(SETTINGS);
    for (let i = 0; i < 19; i += 1) breaker.recordSignal(i % 2 === 0 ? 'failure' : 'success', 0, false);
    expect(breaker.recordSignal('success', 700_000, false)).toBe(false);
    expect(breaker.recordSignal('failure', 700_000, false)).toBe(false);
    expect(breaker.allowsTraffic).toBe(true);
  });

  it('doubles its cooldown up to the maximum, and starts again once closed', () => {
    const breaker = new Breaker({ ...SETTINGS, cooldownSeconds: 300 });
    failTimes(breaker, 5);
    const minutes: number[] = [];
    let now = 0;
    for (let i = 0; i < 6; i += 1) {
      minutes.push(breaker.record.cooldownMs / 60_000);
      now = breaker.probeAt!;
      breaker.startProbe(now + 16_000);
      expect(breaker.recordSignal('failure', now, true)).toBe(true);
    }
    expect(minutes).toEqual([5, 10, 20, 40, 60, 60]);
    expect(breaker.record.openedAt).toBe(0);
    breaker.startProbe(now);
    expect(breaker.recordSignal('success', now, true)).toBe(true);
    expect(breaker.record).toEqual(CLOSED_BREAKER);
    failTimes(breaker, 5, now);
    expect(breaker.record.cooldownMs).toBe(300_000);
  });

  it('ignores outcomes of requests that were in flight when it opened', () => {
    const breaker = new Breaker(SETTINGS);
    failTimes(breaker, 5);
    const { record } = breaker;
    for (const signal of ['success', 'failure', 'neutral'] as const)
      expect(breaker.recordSignal(signal, 1, false)).toBe(false);
    expect(breaker.record).toBe(record);
  });

  it('closes on any answer to a probe that is not a failure', () => {
    const breaker = new Breaker(SETTINGS);
    failTimes(breaker, 5);
    breaker.startProbe(400_000);
    expect(breaker.recordSignal('neutral', 300_000, true)).toBe(true);
    expect(breaker.allowsTraffic).toBe(true);
  });

  it('allows another probe when one was abandoned, or when its deadline has passed', () => {
    const breaker = new Breaker(SETTINGS);
    failTimes(breaker, 5);
    breaker.startProbe(316_000);
    expect(breaker.probeAt).toBe(316_000);
    breaker.abandonProbe(300_100);
    expect(breaker.record.circuit).toBe('open');
    expect(breaker.probeAt).toBe(300_100);
  });

  it('can be turned off', () => {
    const breaker = new Breaker(null, { ...CLOSED_BREAKER, circuit: 'open', openedAt: 1, nextProbeAt: 2 });
    expect(failTimes(breaker, 100).some(Boolean)).toBe(false);
    expect(breaker.allowsTraffic).toBe(true);
    expect(breaker.probeAt).toBeNull();
  });

  it('survives a restart', () => {
    const breaker = new Breaker(SETTINGS);
    failTimes(breaker, 4);
    const restarted = new Breaker(SETTINGS, breaker.record);
    expect(failTimes(restarted, 1)).toEqual([true]);
    const again = new Breaker(SETTINGS, restarted.record);
    expect(again.allowsTraffic).toBe(false);
    expect(again.probeAt).toBe(restarted.probeAt);
  });
});

it.each([0.0005, 0.001, 1.005, 0.0019])(
  'a cooldown of %d s is stored in whole milliseconds',
  (cooldownSeconds) => {
    const breaker = new Breaker({ ...SETTINGS, consecutive: 1, cooldownSeconds });
    breaker.recordSignal('failure', 1_000, false);
    expect(breaker.record.circuit).toBe('open');
    expect(breaker.record.cooldownMs).toBe(Math.max(1, Math.round(cooldownSeconds * 1000)));
    expect(Number.isInteger(breaker.record.cooldownMs)).toBe(true);
  },
);

/** The same rules in the simplest form, over the whole history. */
class Model {
  readonly settings: BreakerSettings;
  circuit: 'closed' | 'open' | 'half_open' = 'closed';
  consecutive = 0;
  outcomes: { bucket: number; failed: boolean }[] = [];
  cooldownMs = 0;
  nextProbeAt: number | null = null;
  newestBucket = Number.NEGATIVE_INFINITY;

  constructor(settings: BreakerSettings) {
    this.settings = settings;
  }

  recordSignal(signal: Signal, now: number, wasProbe: boolean): void {
    const { settings } = this;
    if (this.circuit !== 'closed') {
      if (!wasProbe) return;
      if (signal === 'none') {
        this.circuit = 'open';
        this.nextProbeAt = now + this.cooldownMs;
        return;
      }
      this.outcomes = [];
      if (signal === 'failure') {
        this.cooldownMs = Math.min(this.cooldownMs * 2, settings.maxCooldownSeconds * 1000);
        this.circuit = 'open';
        this.nextProbeAt = now + this.cooldownMs;
      } else {
        this.circuit = 'closed';
        this.consecutive = 0;
        this.nextProbeAt = null;
      }
      return;
    }
    if (signal === 'neutral' || signal === 'none') return;
    const bucket = Math.floor(now / (settings.windowSeconds * 100));
    this.newestBucket = Math.max(this.newestBucket, bucket);
    this.outcomes.push({ bucket: this.newestBucket, failed: signal === 'failure' });
    this.consecutive = signal === 'failure' ? this.consecutive + 1 : 0;
    if (signal !== 'failure') return;
    const recent = this.outcomes.filter((entry) => entry.bucket > this.newestBucket - 10);
    const failed = recent.filter((entry) => entry.failed).length;
    const byRate = recent.length >= settings.minRequests && failed / recent.length >= settings.failureRate;
    if (this.consecutive < settings.consecutive && !byRate) return;
    this.circuit = 'open';
    this.cooldownMs = settings.cooldownSeconds * 1000;
    this.nextProbeAt = now + this.cooldownMs;
    this.outcomes = [];
  }
}

const signal = fc.constantFrom<Signal>('success', 'failure', 'failure', 'neutral', 'none');
const step = fc.record({
  waitMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: -3_000, max: 400_000 })),
  signal,
  what: fc.constantFrom('traffic', 'traffic', 'traffic', 'probe', 'late', 'abandon', 'restart'),
});

describe('HLT-1: the breaker against a model', () => {
  it('opens exactly by the rules, allows one probe at a time, closes on its success', () => {
    fc.assert(
      fc.property(
        fc.record({
          consecutive: fc.integer({ min: 1, max: 8 }),
          failureRate: fc.constantFrom(0.25, 0.5, 0.9),
          minRequests: fc.integer({ min: 1, max: 15 }),
          windowSeconds: fc.constantFrom(10, 60, 600),
          cooldownSeconds: fc.constantFrom(1, 60),
          maxCooldownSeconds: fc.constantFrom(60, 200),
        }),
        fc.array(step, { maxLength: 150, size: 'max' }),
        (settings, steps) => {
          let breaker = new Breaker(settings);
          const model = new Model(settings);
          let now = 1_000_000;
          let probing = false;
          for (const { waitMs, signal, what } of steps) {
            now += waitMs;
            const mayProbe = !breaker.allowsTraffic && breaker.probeAt !== null && breaker.probeAt <= now;
            if (what === 'probe' && mayProbe && !probing) {
              breaker.startProbe(now + 16_000);
              model.circuit = 'half_open';
              model.nextProbeAt = now + 16_000;
              probing = true;
              // No other probe may start before the deadline of this one.
              expect(breaker.allowsTraffic).toBe(false);
              expect(breaker.probeAt).toBe(now + 16_000);
            } else if (what === 'probe' && probing) {
              breaker.recordSignal(signal, now, true);
              model.recordSignal(signal, now, true);
              probing = false;
            } else if (what === 'abandon' && probing) {
              breaker.abandonProbe(now);
              model.circuit = 'open';
              model.nextProbeAt = now;
              probing = false;
            } else if (what === 'late' && !breaker.allowsTraffic) {
              breaker.recordSignal(signal, now, false);
            } else if (what === 'traffic' && breaker.allowsTraffic) {
              breaker.recordSignal(signal, now, false);
              model.recordSignal(signal, now, false);
            } else if (what === 'restart') {
              breaker = new Breaker(settings, breaker.record);
              model.outcomes = [];
              model.newestBucket = Number.NEGATIVE_INFINITY;
            }
            expect(breaker.record.circuit).toBe(model.circuit);
            expect(breaker.probeAt).toBe(model.nextProbeAt);
            expect(breaker.allowsTraffic).toBe(model.circuit === 'closed');
            if (model.circuit !== 'closed') {
              expect(breaker.record.cooldownMs).toBe(model.cooldownMs);
              expect(model.cooldownMs).toBeLessThanOrEqual(
                Math.max(settings.maxCooldownSeconds, settings.cooldownSeconds) * 1000,
              );
            }
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
