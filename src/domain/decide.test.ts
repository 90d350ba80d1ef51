import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveRetry } from '../domain/endpoint-config.ts';
import { type AttemptOutcome, type ErrorClass, errorClasses, type Verdict } from '../domain/outcome.ts';
import { type DecideContext, decide, expiresAt, signalOf } from './decide.ts';

const NOW = 1_800_000_000_000;
const policy = resolveRetry();
const fresh = { attempts: 0, attemptsBeforeReplay: 0, agesFrom: NOW };
const context: DecideContext = { now: NOW, random: () => 0.5, retryAfterCapMs: 24 * 3_600_000 };

function outcome(part: Partial<AttemptOutcome>): AttemptOutcome {
  return {
    startedAt: NOW,
    durationMs: 1,
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
    statusCode: null,
    error: null,
    url: 'https://example.com/',
    requestHeaders: {},
    responseHeaders: null,
    responseBody: null,
    responseTruncated: false,
    retryAfterMs: null,
    ...part,
  };
}

const answer = (statusCode: number, retryAfterMs: number | null = null) =>
  outcome({ statusCode, retryAfterMs });
const failure = (kind: ErrorClass) => outcome({ error: { class: kind, message: '' } });

describe('RTY-1: the verdict on an answer', () => {
  it('is right for every status code', () => {
    for (let status = 100; status <= 599; status += 1) {
      const verdict = decide(answer(status), fresh, policy, context);
      let expected: Verdict;
      if (status >= 200 && status < 300) expected = { kind: 'delivered' };
      else if (status === 410) expected = { kind: 'dead', reason: 'gone', disableEndpoint: true };
      else if ([408, 425, 429].includes(status) || status >= 500 || status < 200)
        expected = { kind: 'retry', dueAt: NOW + 30_000 };
      else expected = { kind: 'dead', reason: 'rejected', disableEndpoint: false };
      expect({ status, verdict }).toEqual({ status, verdict: expected });
    }
  });

  const retried = (Object.keys(errorClasses) as ErrorClass[]).filter((kind) => kind !== 'mail_rejected');
  it.each(retried)('is a retry without an answer (%s)', (kind) => {
    expect(decide(failure(kind), fresh, policy, context)).toEqual({ kind: 'retry', dueAt: NOW + 30_000 });
  });

  it('is a dead letter if the mail server refuses a message for good, which says nothing against the server', () => {
    const refused = failure('mail_rejected');
    const dead = { kind: 'dead', reason: 'rejected', disableEndpoint: false };
    expect(decide(refused, fresh, policy, context)).toEqual(dead);
    expect(signalOf(refused)).toBe('neutral');
  });

  it('DLV-7: is a retry after a rejected access token, whatever the rules of the endpoint say about 401', () => {
    const refused = outcome({ statusCode: 401, error: { class: 'oauth_rejected', message: '' } });
    const strict = resolveRetry({ permanent: [401] });
    expect(decide(refused, fresh, strict, context).kind).toBe('retry');
    expect(signalOf(refused)).toBe('neutral');
  });

  it('follows the rules of the endpoint for status codes', () => {
    const own = resolveRetry({ permanent: [503], transient: ['4xx', 410, '3xx'] });
    expect(decide(answer(404), fresh, own, context).kind).toBe('retry');
    expect(decide(answer(410), fresh, own, context).kind).toBe('retry');
    expect(decide(answer(301), fresh, own, context).kind).toBe('retry');
    expect(decide(answer(503), fresh, own, context)).toMatchObject({ kind: 'dead', reason: 'rejected' });
    // A class is not enough to keep an endpoint that says that it is gone.
    expect(decide(answer(410), fresh, resolveRetry({ transient: ['4xx'] }), context)).toMatchObject({
      reason: 'gone',
    });
  });

  it('allows as many attempts as the schedule has, counted from the last replay', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }), (made, before) => {
        const tried = { attempts: before + made, attemptsBeforeReplay: before, agesFrom: NOW };
        const verdict = decide(answer(500), tried, policy, context);
        if (made + 1 >= 7) expect(verdict).toMatchObject({ kind: 'dead', reason: 'exhausted' });
        else {
          const delay = [30, 300, 1800, 7200, 28800, 86400][made]!;
          expect(verdict).toEqual({ kind: 'retry', dueAt: NOW + delay * 1000 });
        }
      }),
    );
  });
});

describe('RTY-4: Retry-After', () => {
  it.each([429, 503])('of a %i is honoured if it is later than the schedule', (status) => {
    expect(decide(answer(status, 120_000), fresh, policy, context)).toEqual({
      kind: 'retry',
      dueAt: NOW + 120_000,
    });
    expect(decide(answer(status, 1_000), fresh, policy, context)).toEqual({
      kind: 'retry',
      dueAt: NOW + 30_000,
    });
  });

  it('is honoured up to the cap', () => {
    const capped = { ...context, retryAfterCapMs: 60_000 };
    expect(decide(answer(429, 1e12), fresh, policy, capped)).toEqual({ kind: 'retry', dueAt: NOW + 60_000 });
  });
});

describe('RTY-8: the maximum age', () => {
  it('ends a delivery whose next attempt would come too late', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100 * 3_600_000 }),
        fc.integer({ min: 0, max: 5 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.option(fc.integer({ min: 0, max: 48 * 3_600_000 }), { nil: null }),
        (ageMs, attempts, random, retryAfterMs) => {
          const tried = { attempts, attemptsBeforeReplay: 0, agesFrom: NOW - ageMs };
          const verdict = decide(answer(503, retryAfterMs), tried, policy, {
            ...context,
            random: () => random,
          });
          if (verdict.kind === 'retry') {
            expect(verdict.dueAt).toBeGreaterThanOrEqual(NOW);
            expect(verdict.dueAt).toBeLessThanOrEqual(expiresAt(tried, policy));
          } else {
            expect(verdict).toEqual({ kind: 'dead', reason: 'expired', disableEndpoint: false });
          }
        },
      ),
    );
  });

  it('counts from the last replay, not from the first acceptance', () => {
    const replayed = { attempts: 9, attemptsBeforeReplay: 7, agesFrom: NOW - 1000 };
    expect(decide(answer(500), replayed, policy, context).kind).toBe('retry');
    expect(
      decide(answer(500), { ...replayed, agesFrom: NOW - 80 * 3_600_000 }, policy, context),
    ).toMatchObject({
      reason: 'expired',
    });
  });

  it('does not apply to a delivery that succeeded late', () => {
    expect(decide(answer(200), { ...fresh, agesFrom: 0 }, policy, context)).toEqual({ kind: 'delivered' });
  });
});

describe('HLT-1: the signal for the breaker', () => {
  it.each([
    [408, 'neutral'],
    [200, 'success'],
    [204, 'success'],
    [302, 'neutral'],
    [400, 'neutral'],
    [404, 'neutral'],
    [410, 'neutral'],
    [429, 'neutral'],
    [500, 'failure'],
    [503, 'failure'],
    [599, 'failure'],
  ])('%i is a %s', (status, signal) => {
    expect(signalOf(answer(status))).toBe(signal);
  });

  it.each(['timeout', 'dns_failed', 'connect_refused', 'tls_expired', 'response_invalid'] as const)(
    '%s is a failure',
    (kind) => {
      expect(signalOf(failure(kind))).toBe('failure');
    },
  );

  it('is none if Posthorn itself failed', () => {
    expect(signalOf(failure('internal'))).toBe('none');
  });
});
