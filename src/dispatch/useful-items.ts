import type { Lane } from './lane.ts';

/** What a lane keeps in memory that cannot send now: candidates for a probe. */
const PROBE_CANDIDATES = 2;
/** A lane that must wait for longer than this keeps only candidates for a probe. */
const LONG_HOLD_MS = 5_000;
/** A lane with a rate limit keeps what it may send in this time. */
const RATE_AHEAD_SECONDS = 10;
/** A lane with batches keeps the events of this many full ones, even if that is more than other lanes may hold. */
const BATCHES_AHEAD = 2;

/** Returns how many deliveries of each kind are useful in memory: as many as the lane can send soon, at most `max`. */
export function usefulItems(lane: Lane, max: number, now: number): number {
  const { rateLimit, batch } = lane.endpoint;
  const perRequest = batch === null ? 1 : batch.maxEvents;
  if (perRequest > 1) max = Math.max(max, BATCHES_AHEAD * perRequest);
  // A request of an earlier owner may not be at the head of a FIFO lane, so the lane loads all that it can.
  if (lane.fifo) return max;
  if (!lane.isFlowing || lane.holdUntil - now > LONG_HOLD_MS) return Math.min(max, PROBE_CANDIDATES);
  const byRate =
    rateLimit === null
      ? max
      : Math.ceil(rateLimit.perSecond * RATE_AHEAD_SECONDS + rateLimit.burst) * perRequest;
  const byPlaces = lane.responseTimes.isSlow(now) ? 2 * lane.inFlightLimit * perRequest : max;
  return Math.max(PROBE_CANDIDATES, Math.min(max, byRate, byPlaces));
}
