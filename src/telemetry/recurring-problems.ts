import type { Clock } from '../domain/clock.ts';
import type { Log } from './log.ts';

const QUIET_MS = 10_000;

/**
 * Failed background work is retried, often several times per second while the database cannot be reached. Logs the
 * first problem of each kind at once, and then one line every ten seconds with the number of repetitions.
 */
export function recurringProblems(log: Log, clock: Clock): (what: string, error: unknown) => void {
  const known = new Map<string, { since: number; suppressed: number }>();
  return (what, error) => {
    const now = clock.monotonic();
    const last = known.get(what);
    if (last !== undefined && now - last.since < QUIET_MS) {
      last.suppressed += 1;
      return;
    }
    known.set(what, { since: now, suppressed: 0 });
    const repeated = last?.suppressed || undefined;
    log.warn({ err: error ?? undefined, repeated }, `could not ${what}; will try again`);
  };
}
