import { type Deduplicator, handleOnce, type ReceiptKey, type ReceiptStore } from './deduplicator.ts';

export interface MemoryOptions {
  /** How long an event is remembered. Default: 3 days. */
  readonly rememberSeconds?: number;
  /** How many are remembered at most; the oldest are forgotten first. Default: 100,000. */
  readonly maxEntries?: number;
  readonly now?: () => number;
}

/** For one process, and forgotten at its end: for development, or where a rare repeat does no harm. */
export function memoryDeduplicator(options: MemoryOptions = {}): Deduplicator & { readonly size: number } {
  const { rememberSeconds = 3 * 86_400, maxEntries = 100_000, now = Date.now } = options;
  const running = new Set<string>();
  /** Until when each is remembered, oldest first. */
  const handled = new Map<string, number>();

  const nameOf = ({ subscriber, eventId }: ReceiptKey): string => JSON.stringify([subscriber, eventId]);
  const store: ReceiptStore = {
    async claim(key) {
      const name = nameOf(key);
      if ((handled.get(name) ?? 0) > now()) return 'duplicate';
      if (running.has(name)) return 'in_progress';
      running.add(name);
      return 'taken';
    },
    async settle(key) {
      const name = nameOf(key);
      running.delete(name);
      handled.delete(name);
      handled.set(name, now() + rememberSeconds * 1000);
      for (const [oldest, until] of handled) {
        if (handled.size <= maxEntries && until > now()) break;
        handled.delete(oldest);
      }
    },
    async release(key) {
      running.delete(nameOf(key));
    },
  };
  return {
    once: (key, handler) => handleOnce(store, key, handler),
    get size() {
      return handled.size;
    },
  };
}
