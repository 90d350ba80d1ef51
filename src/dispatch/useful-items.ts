import type { Lane } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';

/** A lane that cannot send now keeps this many deliveries in memory, as candidates for a probe. */
const PROBE_CANDIDATES = 2;
/** A lane that must wait for longer than this keeps only candidates for a probe. */
const LONG_HOLD_MS = 5_000;
/** A lane with a rate limit keeps what it may send in this time. */
const RATE_AHEAD_SECONDS = 10;
/** A lane keeps this many times what it can have on the wire. */
const ROUNDS_AHEAD = 2;
/** A lane with batches keeps the events of this many full ones, even if that is more than other lanes may hold. */
const BATCHES_AHEAD = 2;
/** A fast lane may hold this many times as much as other lanes, as long as there is memory for all. */
const FAST_SHARE = 10;

/** Returns how many deliveries of each kind are useful in memory: as many as the lane can send soon, within the budget. */
export function usefulItems(
  lane: Lane,
  budget: Pick<LaneBudget, 'laneItems' | 'isTight'>,
  now: number,
): number {
  const { rateLimit, batch } = lane.endpoint;
  const perRequest = batch === null ? 1 : batch.maxEvents;
  const isSlow = lane.responseTimes.isSlow(now);
  const max =
    perRequest > 1 ? usefulForBatches(lane, budget, perRequest, isSlow || budget.isTight) : budget.laneItems;
  // A FIFO lane loads all that it can: an earlier owner's request may belong to a delivery behind the head.
  if (lane.isFifo) return max;
  if (lane.holdUntil - now > LONG_HOLD_MS || !needsBacklog(lane)) return Math.min(max, PROBE_CANDIDATES);
  const byRate =
    rateLimit === null
      ? max
      : Math.ceil(rateLimit.perSecond * RATE_AHEAD_SECONDS + rateLimit.burst) * perRequest;
  const byPlaces = isSlow ? ROUNDS_AHEAD * lane.inFlightLimit * perRequest : max;
  return Math.max(PROBE_CANDIDATES, Math.min(max, byRate, byPlaces));
}

/**
 * False if the lane needs only candidates for a probe. With debounce a candidate may have to wait for another delivery of its key, and
 * that one must be in memory too.
 */
export const needsBacklog = ({ isFlowing, isActive, isLeaving, endpoint }: Lane): boolean =>
  isFlowing || (isActive && !isLeaving && endpoint.debounce !== null);

/**
 * Returns how many fresh deliveries that were just committed are useful in memory. A lane that is known to be fast takes more
 * of them than it would load: if a burst were left in the store, each of its deliveries would cost a read.
 */
export function usefulCommitted(
  lane: Lane,
  budget: Pick<LaneBudget, 'laneItems' | 'isTight'>,
  now: number,
): number {
  const max = usefulItems(lane, budget, now);
  const { batch, rateLimit } = lane.endpoint;
  if (batch !== null || rateLimit !== null || max < budget.laneItems || budget.isTight) return max;
  return lane.responseTimes.isKnownToBeFast(now) ? FAST_SHARE * max : max;
}

/**
 * Events arrive in commits of hundreds, and each request takes many of them. With as little memory as other lanes have, a
 * fast lane would leave most events in the store and read them back, although it keeps up with them.
 */
function usefulForBatches(
  { inFlightLimit }: Lane,
  { laneItems }: Pick<LaneBudget, 'laneItems'>,
  perRequest: number,
  isModest: boolean,
): number {
  const rounds = Math.min(FAST_SHARE * laneItems, ROUNDS_AHEAD * inFlightLimit * perRequest);
  return Math.max(laneItems, BATCHES_AHEAD * perRequest, isModest ? 0 : rounds);
}
