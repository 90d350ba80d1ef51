/**
 * Corrects times that were stored while the store's clock was wrong. A time that is further in the future than Posthorn ever sets it
 * would delay a delivery or an endpoint for days after the clock is right again.
 */
import type { Clock } from '../domain/clock.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { timeOfId } from '../domain/ids.ts';
import { longestDelayMs } from '../domain/retry.ts';
import type { LaneState } from '../ports/delivery-queue.ts';

/** No other worker starts a probe for this long after the deadline of a recorded one. */
export const PROBE_MARGIN_MS = 3_000;
/** Clocks of two processes may differ by seconds while one of them follows a jump. */
const TOLERANCE_MS = 60_000;

/** Returns the latest time until which a `Retry-After` can hold an endpoint back. */
export const latestHoldAt = (now: number, retryAfterCapMs: number): number =>
  now + retryAfterCapMs + TOLERANCE_MS;

/**
 * Returns the state with corrected times. Ignores a hold that ends later than any `Retry-After` allows, and moves the
 * next probe to the latest time that Posthorn can have set.
 */
export function correctState(
  state: LaneState,
  { timeoutMs }: Endpoint,
  clock: Pick<Clock, 'now' | 'isSteady'>,
  retryAfterCapMs: number,
): LaneState {
  const { breaker, holdUntil = null, failingSince } = state;
  const now = clock.now();
  const probeDeadline = now + timeoutMs + PROBE_MARGIN_MS;
  const latestProbeAt = Math.max(now + breaker.cooldownMs, probeDeadline);
  // After a step of the clock, a probe of an earlier owner may be on the wire, whatever its deadline.
  const isProbeRecent = breaker.circuit === 'half_open' && clock.isSteady === false;
  const nextProbeAt = isProbeRecent ? probeDeadline : breaker.nextProbeAt;
  return {
    ...state,
    holdUntil: (holdUntil ?? 0) > latestHoldAt(now, retryAfterCapMs) ? null : holdUntil,
    failingSince: failingSince === null ? null : Math.min(failingSince, now),
    breaker:
      nextProbeAt === null ? breaker : { ...breaker, nextProbeAt: Math.min(nextProbeAt, latestProbeAt) },
  };
}

/**
 * Returns the delivery with corrected times. Due now are: a retry that is due later than any delay of its endpoint
 * allows, a replay, and a delivery that was accepted while the clock was ahead. A delivery that somebody scheduled
 * keeps its time.
 */
export function correctDelivery<T extends WaitingDelivery>(
  delivery: T,
  { retry, debounce }: Endpoint,
  now: number,
  retryAfterCapMs: number,
): T {
  const { id, dueAt, attempts, trigger, agesFrom } = delivery;
  const acceptedAt = timeOfId(id);
  const isAhead = acceptedAt > now + TOLERANCE_MS;
  const isDueAhead = dueAt !== null && dueAt > now + TOLERANCE_MS;
  if (!isAhead && !isDueAhead) return delivery;
  return {
    ...delivery,
    agesFrom: isAhead ? Math.min(agesFrom, now) : agesFrom,
    dueAt: isDueAhead && isDueTooLate() ? now : dueAt,
  };

  function isDueTooLate(): boolean {
    if (trigger === 'replay') return true;
    const longestMs = Math.max(longestDelayMs(retry, retryAfterCapMs), debounce?.maxWaitMs ?? 0);
    // A scheduled delivery ages from its due time on. If the age began earlier, debounce has postponed the delivery.
    const isPostponed = agesFrom < dueAt! - TOLERANCE_MS;
    if (attempts > 0 || isPostponed) return dueAt! > now + longestMs + TOLERANCE_MS;
    return isAhead && dueAt! - acceptedAt <= longestMs;
  }
}
