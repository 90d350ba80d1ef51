import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AdaptiveLimits,
  type AnswerKind,
  CALM_ROUNDS,
  FULL_DEADLINE_EVERY,
  MIN_ROUND,
  MIN_SUCCESSES,
  ROUNDS_UNTIL_NEXT_TRY,
} from './adaptive-limits.ts';

const CONFIGURED = { maxInFlight: 8, timeoutMs: 10_000 };

/** Answers that come while the endpoint is at its in-flight limit. Time goes on between them. */
function newEndpoint(configured = CONFIGURED) {
  const limits = new AdaptiveLimits();
  let now = 1_000_000;
  return {
    limits,
    setBack(ms: number) {
      now -= ms;
    },
    answer(
      count: number,
      durationMs: number,
      kind: AnswerKind = 'success',
      more: { hadFullDeadline?: boolean; wasFull?: boolean; startedAt?: number } = {},
    ) {
      for (let n = 0; n < count; n += 1) {
        const startedAt = now;
        now += durationMs + 1;
        limits.recordAnswer(
          { kind, startedAt, durationMs, hadFullDeadline: true, wasFull: true, ...more },
          configured,
          now,
        );
      }
      return limits.record;
    },
  };
}

/** Enough fast answers for a full recovery: the limit grows by one per round, then the calm rounds at the configured limit. */
const answersToRecover = (maxInFlight: number): number =>
  (maxInFlight + CALM_ROUNDS) * Math.max(MIN_ROUND, maxInFlight) * 2;

describe('DLV-3: in-flight limit of a slow endpoint', () => {
  it('halves the limit after a slow round, down to one, and adds one after each calm round', () => {
    const { limits, answer } = newEndpoint();
    expect(answer(MIN_ROUND - 1, 9_000)).toBeNull();
    expect(answer(1, 9_000)).toMatchObject({ inFlightLimit: 4, timeoutMs: null, reason: 'slow' });
    expect(answer(MIN_ROUND, 9_000)).toMatchObject({ inFlightLimit: 2 });
    expect(answer(5 * MIN_ROUND, 9_000)).toMatchObject({ inFlightLimit: 1 });
    const since = limits.record!.since;
    expect(answer(MIN_ROUND, 100)).toMatchObject({ inFlightLimit: 2, since });
    expect(answer(6 * MIN_ROUND, 100)).toMatchObject({ inFlightLimit: 8, since });
    expect(answer(CALM_ROUNDS * MIN_ROUND, 100)).toBeNull();
    expect(limits.inFlightLimit).toBe(Number.POSITIVE_INFINITY);
  });

  it('undoes a halving that did not make the answers faster, and tries again much later', () => {
    const { answer } = newEndpoint();
    expect(answer(MIN_ROUND, 5_500)).toMatchObject({ inFlightLimit: 4 });
    expect(answer(MIN_ROUND, 5_500)).toBeNull();
    expect(answer(ROUNDS_UNTIL_NEXT_TRY * MIN_ROUND, 5_500)).toBeNull();
    expect(answer(MIN_ROUND, 5_500)).toMatchObject({ inFlightLimit: 4 });
    // This time it helps.
    expect(answer(MIN_ROUND, 4_000)).toMatchObject({ inFlightLimit: 5 });
  });

  it('counts answers after the clock was set back', () => {
    const { answer, setBack } = newEndpoint();
    expect(answer(MIN_ROUND, 9_000)).toMatchObject({ inFlightLimit: 4 });
    setBack(3_600_000);
    expect(answer(MIN_ROUND, 9_000)).toMatchObject({ inFlightLimit: 2 });
  });

  it('keeps the limit if the endpoint does not use all of it, if more than half of the answers are fast, or after fast failures', () => {
    const idle = newEndpoint();
    expect(idle.answer(100, 9_000, 'success', { wasFull: false })).toBeNull();
    const mixed = newEndpoint();
    for (let n = 0; n < 30; n += 1) {
      mixed.answer(4, 9_000);
      mixed.answer(6, 50);
    }
    expect(mixed.limits.record).toBeNull();
    const failing = newEndpoint();
    expect(failing.answer(200, 5, 'failure')).toBeNull();
    // A gateway that gives up after most of the deadline is as slow as a receiver that answers then.
    expect(failing.answer(MIN_ROUND, 9_000, 'failure')).toMatchObject({ inFlightLimit: 4 });
    expect(failing.answer(200, 5, 'failure')).toMatchObject({ inFlightLimit: 4 });
  });

  it('halves the limit once for requests that were on the wire together', () => {
    const { limits, answer } = newEndpoint({ maxInFlight: 100, timeoutMs: 10_000 });
    expect(answer(100, 9_000, 'success', { startedAt: 5 })).toMatchObject({ inFlightLimit: 50 });
    expect(answer(500, 9_000, 'success', { startedAt: 5 })).toMatchObject({ inFlightLimit: 50 });
    expect(limits.unstored).toMatchObject({ before: null, after: { inFlightLimit: 50 } });
  });

  it('continues with the stored limit, and with the full deadline, after a takeover', () => {
    const stored = { inFlightLimit: 2, timeoutMs: 3_000, reason: 'timeouts', since: 5 } as const;
    const limits = new AdaptiveLimits(stored);
    expect(limits.record).toEqual({ inFlightLimit: 2, timeoutMs: null, reason: 'slow', since: 5 });
    expect(limits.nextTimeoutMs()).toBeUndefined();
    expect(limits.unstored).toMatchObject({ before: stored });
    limits.markStored();
    limits.reset();
    expect(limits.unstored).toMatchObject({ before: { inFlightLimit: 2 }, after: null });
  });
});

describe('DLV-3: deadline of a slow endpoint that times out', () => {
  it('shortens it only after the limit was lowered, only after timeouts, and only with enough successes', () => {
    const slow = newEndpoint();
    slow.answer(MIN_SUCCESSES, 1_000);
    expect(slow.answer(200, 9_000)).toMatchObject({ inFlightLimit: 1, timeoutMs: null });

    const known = newEndpoint();
    known.answer(MIN_SUCCESSES, 1_000);
    expect(known.answer(MIN_ROUND, 10_000, 'timeout')).toMatchObject({ inFlightLimit: 4, timeoutMs: null });
    const record = known.answer(MIN_ROUND, 10_000, 'timeout')!;
    expect(record).toMatchObject({ inFlightLimit: 2, reason: 'timeouts' });
    // 1.5 times the p99, which the histogram knows to within 9.1 %; at least two seconds.
    expect(record.timeoutMs).toBe(2_000);

    const unknown = newEndpoint();
    unknown.answer(MIN_SUCCESSES - 1, 1_000);
    expect(unknown.answer(500, 10_000, 'timeout')).toMatchObject({ inFlightLimit: 1, timeoutMs: null });
  });

  it('counts only successes under the full deadline', () => {
    const { answer } = newEndpoint();
    answer(MIN_SUCCESSES - 1, 3_000);
    answer(1_000, 1_000, 'success', { hadFullDeadline: false });
    expect(answer(100, 10_000, 'timeout')).toMatchObject({ timeoutMs: null });
    answer(1, 3_000);
    const { timeoutMs } = answer(MIN_ROUND, 10_000, 'timeout')!;
    expect(timeoutMs).toBeGreaterThan(1.5 * 3_000 * 0.909);
    expect(timeoutMs).toBeLessThan(1.5 * 3_000 * 1.092);
  });

  it('applies to an endpoint whose max_in_flight is 1, without lowering its limit', () => {
    const { answer } = newEndpoint({ maxInFlight: 1, timeoutMs: 10_000 });
    answer(MIN_SUCCESSES, 1_000);
    expect(answer(50, 6_000)).toBeNull();
    expect(answer(2 * MIN_ROUND, 10_000, 'timeout')).toMatchObject({ inFlightLimit: 1, reason: 'timeouts' });
    expect(answer(10 * MIN_ROUND, 100)).toBeNull();
  });

  it('uses the full deadline for one request in ten, and extends it as soon as one of them shows that it was too short', () => {
    const { limits, answer } = newEndpoint();
    answer(MIN_SUCCESSES, 1_000);
    answer(3 * MIN_ROUND, 10_000, 'timeout');
    expect(limits.record?.timeoutMs).toBe(2_000);
    const deadlines = Array.from({ length: 50 }, () => limits.nextTimeoutMs());
    expect(deadlines.filter((timeoutMs) => timeoutMs === undefined)).toHaveLength(50 / FULL_DEADLINE_EVERY);
    expect(answer(1, 4_000)).toMatchObject({ timeoutMs: 6_000 });
    expect(answer(1, 9_000)).toMatchObject({ timeoutMs: null, reason: 'slow' });
  });
});

describe('DLV-3: adaptive limits never starve an endpoint', () => {
  const configured = fc.record({
    maxInFlight: fc.integer({ min: 1, max: 40 }),
    timeoutMs: fc.integer({ min: 1_000, max: 30_000 }),
  });
  const history = fc.array(
    fc.record({
      kind: fc.constantFrom<AnswerKind>('success', 'success', 'rejected', 'failure', 'timeout'),
      count: fc.integer({ min: 1, max: 60 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      isBusy: fc.boolean(),
    }),
    { maxLength: 30 },
  );

  it('allows at least one request at a time and a deadline within its bounds, and recovers completely from every history', () => {
    fc.assert(
      fc.property(configured, history, (settings, answers) => {
        const { limits, answer } = newEndpoint(settings);
        for (const { kind, count, share, isBusy } of answers)
          for (let n = 0; n < count; n += 1) {
            const timeoutMs = limits.nextTimeoutMs();
            const durationMs =
              kind === 'timeout' ? (timeoutMs ?? settings.timeoutMs) : share * settings.timeoutMs;
            answer(1, durationMs, kind, {
              hadFullDeadline: timeoutMs === undefined,
              wasFull: isBusy,
            });
            const { record } = limits;
            if (record === null) continue;
            expect(record.inFlightLimit).toBeGreaterThanOrEqual(1);
            expect(record.inFlightLimit).toBeLessThanOrEqual(settings.maxInFlight);
            if (record.timeoutMs === null) continue;
            expect(record.timeoutMs).toBeGreaterThanOrEqual(2_000);
            expect(record.timeoutMs).toBeLessThan(settings.timeoutMs);
          }
        answer(answersToRecover(settings.maxInFlight), 1);
        expect(limits.record).toBeNull();
      }),
    );
  });

  it('settles near what the receiver can do: its answers take longer the more requests it has', () => {
    fc.assert(
      fc.property(configured, fc.integer({ min: 1, max: 40 }), (settings, capacity) => {
        const { maxInFlight, timeoutMs } = settings;
        const { limits, answer } = newEndpoint(settings);
        const seen: number[] = [];
        for (let n = 0; n < 12_000; n += 1) {
          const inFlight = Math.min(limits.inFlightLimit, maxInFlight);
          // With more than `capacity` requests, the answers take more than half of the deadline.
          const durationMs = Math.min(timeoutMs - 1, (timeoutMs / 2) * (inFlight / (capacity + 0.5)));
          answer(1, durationMs);
          if (n >= 4_000) seen.push(inFlight);
        }
        const knee = Math.min(capacity, maxInFlight);
        const mean = seen.reduce((sum, each) => sum + each, 0) / seen.length;
        // AIMD moves between the limit that is too high and half of it, and never below.
        expect(Math.min(...seen)).toBeGreaterThanOrEqual(Math.floor((knee + 1) / 2));
        expect(mean).toBeGreaterThanOrEqual(0.6 * knee);
        expect(Math.max(...seen)).toBeLessThanOrEqual(knee + 1);
      }),
      { numRuns: 30 },
    );
  });
});
