import { type Deduplicator, handleOnce, type ReceiptKey, type ReceiptStore } from './deduplicator.ts';

export interface MemoryOptions {
  /** How long receipts are kept. Default: 3 days. */
  readonly rememberSeconds?: number;
  /** How many receipts are kept; the oldest are dropped first. Default: 100,000. */
  readonly maxEntries?: number;
  readonly now?: () => number;
}

/** Keeps receipts in the memory of this process: for development, or where handling an event twice does no harm. */
export function memoryDeduplicator(options: MemoryOptions = {}): Deduplicator & { readonly size: number } {
  const { rememberSeconds = 3 * 86_400, maxEntries = 100_000, now = Date.now } = options;
  const running = new Set<string>();
  /** When each receipt expires, oldest first. */
  const expiries = new Map<string, number>();

  const toName = ({ subscriber, eventId }: ReceiptKey): string => JSON.stringify([subscriber, eventId]);
  const store: ReceiptStore = {
    async claim(key) {
      const name = toName(key);
      if ((expiries.get(name) ?? 0) > now()) return 'duplicate';
      if (running.has(name)) return 'in_progress';
      running.add(name);
      return 'taken';
    },
    async settle(key) {
      const name = toName(key);
      running.delete(name);
      expiries.delete(name);
      expiries.set(name, now() + rememberSeconds * 1000);
      for (const [oldest, expiresAt] of expiries) {
        if (expiries.size <= maxEntries && expiresAt > now()) break;
        expiries.delete(oldest);
      }
    },
    async release(key) {
      running.delete(toName(key));
    },
  };
  return {
    once: (key, handler) => handleOnce(store, key, handler),
    get size() {
      return expiries.size;
    },
  };
}
