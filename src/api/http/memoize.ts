import type { Clock } from '../../domain/clock.ts';

const REMEMBER_AT_MOST = 1000;

/** Answers that may be a moment old: whoever asks meanwhile shares them, and the work. What failed is not remembered. */
export function briefly<T>(clock: Clock, forMs: number): (key: string, make: () => Promise<T>) => Promise<T> {
  const remembered = new Map<string, { answer: Promise<T>; until: number }>();
  return (key, make) => {
    const found = remembered.get(key);
    if (found !== undefined && found.until > clock.monotonic()) return found.answer;
    if (remembered.size >= REMEMBER_AT_MOST) remembered.clear();
    const entry = { answer: make(), until: clock.monotonic() + forMs };
    remembered.set(key, entry);
    entry.answer.catch(() => {
      if (remembered.get(key) === entry) remembered.delete(key);
    });
    return entry.answer;
  };
}
