/**
 * How fast a child that keeps crashing is started again. One that ran for a while comes back at once; one that
 * crashes on its start waits 1, 2, 4 … 30 seconds. So N children never make more than N starts a second.
 */
const SHORTEST_MS = 1000;
const LONGEST_MS = 30_000;
/** A child that ran this long has shown that it can. */
const PROVEN_MS = 60_000;

export function backoffAfter(ranMs: number, previousBackoffMs: number): number {
  if (ranMs >= PROVEN_MS || previousBackoffMs === 0) return SHORTEST_MS;
  return Math.min(previousBackoffMs * 2, LONGEST_MS);
}

/** Counted from the last start, so that the time it ran is not waited for again. */
export function restartDelayMs(ranMs: number, backoffMs: number): number {
  return Math.max(0, backoffMs - ranMs);
}
