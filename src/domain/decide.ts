/**
 * Decides what happens to a delivery after an attempt. Pure: the same inputs give the same verdict.
 *
 *   2xx                                  delivered, unless its batch result says that this event failed
 *   410                                  dead (gone), and the endpoint is disabled
 *   access token rejected                retry with a new token
 *   mail refused permanently             dead (rejected)
 *   permanent by the endpoint's rules    dead (rejected)
 *   anything else                        retry, unless
 *     this was the last attempt          dead (exhausted)
 *     the next one would be too late     dead (expired)
 */
import type { Signal } from './breaker.ts';
import type { WaitingDelivery } from './delivery.ts';
import type { AttemptOutcome, Verdict } from './outcome.ts';
import { delayMsBefore, isTransientStatus, maxAttempts, type RetryPolicy } from './retry.ts';

export interface DecideContext {
  readonly now: number;
  readonly random: () => number;
  readonly retryAfterCapMs: number;
  /** False: `now` may be wrong, so the age of the delivery does not count. Default true. */
  readonly mayExpire?: boolean;
}

type AttemptHistory = Pick<WaitingDelivery, 'attempts' | 'attemptsBeforeReplay' | 'agesFrom'>;

const GONE = 410;

export function decide(
  outcome: AttemptOutcome,
  delivery: AttemptHistory,
  policy: RetryPolicy,
  context: DecideContext,
): Verdict {
  const status = outcome.statusCode;
  // The request succeeded, but not for this event.
  const isBatchFailure = isFailureInBatch(outcome);
  if (status !== null && isSuccess(status) && !isBatchFailure) return { kind: 'delivered' };
  if (status === GONE && !policy.transient.includes(GONE))
    return { kind: 'dead', reason: 'gone', disableEndpoint: true };
  if (outcome.error?.class === 'mail_rejected')
    return { kind: 'dead', reason: 'rejected', disableEndpoint: false };
  const isTokenRejected = outcome.error?.class === 'oauth_rejected';
  if (status !== null && !isTokenRejected && !isBatchFailure && !isTransientStatus(policy, status)) {
    return { kind: 'dead', reason: 'rejected', disableEndpoint: false };
  }
  const attemptsMade = delivery.attempts + 1 - delivery.attemptsBeforeReplay;
  if (attemptsMade >= maxAttempts(policy))
    return { kind: 'dead', reason: 'exhausted', disableEndpoint: false };
  const scheduledMs = delayMsBefore(policy, attemptsMade + 1, context.random);
  // The receiver may ask for more time than the schedule gives, but not for less.
  const delayMs = Math.max(scheduledMs, Math.min(outcome.retryAfterMs ?? 0, context.retryAfterCapMs));
  const dueAt = context.now + delayMs;
  if ((context.mayExpire ?? true) && dueAt > expiresAt(delivery, policy))
    return { kind: 'dead', reason: 'expired', disableEndpoint: false };
  return { kind: 'retry', dueAt };
}

export function expiresAt(delivery: Pick<WaitingDelivery, 'agesFrom'>, policy: RetryPolicy): number {
  return delivery.agesFrom + policy.maxAgeSeconds * 1000;
}

/** True if the receiver answered 2xx and its batch result says that the event failed, or cannot be read. */
function isFailureInBatch({ error }: AttemptOutcome): boolean {
  return error?.class === 'batch_event_failed' || error?.class === 'batch_result_invalid';
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** What the attempt says about the endpoint's health: any answer below 500 shows that the receiver works. */
export function signalOf(outcome: AttemptOutcome): Signal {
  const errorClass = outcome.error?.class;
  if (errorClass === 'internal' || errorClass === 'conversion_failed') return 'none';
  if (errorClass === 'mail_rejected') return 'neutral';
  const status = outcome.statusCode;
  if (status === null) return 'failure';
  if (isSuccess(status)) return 'success';
  return status >= 500 ? 'failure' : 'neutral';
}
