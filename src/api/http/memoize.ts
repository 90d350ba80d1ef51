import type { Clock } from '../../domain/clock.ts';

const MAX_ENTRIES = 1000;

/**
 * Caches the results of an asynchronous computation for `forMs`, by key. Concurrent callers share one computation.
 * Failures are not cached.
 */
export function memoizeFor<T>(
  clock: Clock,
  forMs: number,
): (key: string, compute: () => Promise<T>) => Promise<T> {
  const entries = new Map<string, { result: Promise<T>; expiresAt: number }>();
  return (key, compute) => {
    const cached = entries.get(key);
    if (cached !== undefined && cached.expiresAt > clock.monotonic()) return cached.result;
    if (entries.size >= MAX_ENTRIES) entries.clear();
    const entry = { result: compute(), expiresAt: clock.monotonic() + forMs };
    entries.set(key, entry);
    entry.result.catch(() => {
      if (entries.get(key) === entry) entries.delete(key);
    });
    return entry.result;
  };
}
