import type { Lane } from './lane.ts';

/** What a lane keeps in memory that cannot send now: candidates for a probe. */
const PROBE_CANDIDATES = 2;
/** A lane that must wait for longer than this keeps only candidates for a probe. */
const LONG_HOLD_MS = 5_000;
/** A lane with a rate limit keeps what it may send in this time. */
const RATE_AHEAD_SECONDS = 10;

/** Returns how many deliveries of each kind are useful in memory: as many as the lane can send soon, at most `max`. */
export function usefulItems(lane: Lane, max: number, now: number): number {
  // A request of an earlier owner may not be at the head of a FIFO lane, so the lane loads all that it can.
  if (lane.fifo) return max;
  if (!lane.isFlowing || lane.holdUntil - now > LONG_HOLD_MS) return Math.min(max, PROBE_CANDIDATES);
  const { rateLimit } = lane.endpoint;
  const byRate =
    rateLimit === null ? max : Math.ceil(rateLimit.perSecond * RATE_AHEAD_SECONDS + rateLimit.burst);
  const byPlaces = lane.responseTimes.isSlow(now) ? 2 * lane.inFlightLimit : max;
  return Math.max(PROBE_CANDIDATES, Math.min(max, byRate, byPlaces));
}
