/**
 * How fast the supervisor restarts a crashed child: at once if the child ran for a while, otherwise after 1, 2, 4 … 30
 * seconds. So N children never cause more than N starts per second.
 */
const MIN_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 30_000;
/** A child that ran this long resets the backoff. */
const RESET_AFTER_MS = 60_000;

export function backoffAfter(ranMs: number, previousBackoffMs: number): number {
  if (ranMs >= RESET_AFTER_MS || previousBackoffMs === 0) return MIN_BACKOFF_MS;
  return Math.min(previousBackoffMs * 2, MAX_BACKOFF_MS);
}

/** The backoff counts from the last start, so the time that the child ran is subtracted. */
export function restartDelayMs(ranMs: number, backoffMs: number): number {
  return Math.max(0, backoffMs - ranMs);
}
