/**
 * Webhooks are delivered at least once; a deduplicator makes their effect happen once. It writes a receipt after the
 * handler succeeded. If the handler fails or the process dies, the next delivery runs the handler again.
 *
 *   claim ─▶ taken ─▶ handler ─▶ settle (handled)
 *     │                  └─ throws ─▶ release, and the caller gets the error
 *     ├─▶ duplicate:   the event was handled before. Answer 2xx and do nothing.
 *     └─▶ in_progress: another request runs the handler for the same event. Answer 503: the sender retries later.
 */
export interface ReceiptKey {
  /** The name of the handler. Several handlers may each handle the same event once. */
  readonly subscriber: string;
  readonly eventId: string;
}

export type OnceResult<T> =
  | { readonly status: 'handled'; readonly result: T }
  | { readonly status: 'duplicate' }
  | { readonly status: 'in_progress' };

export interface Deduplicator {
  /** Runs the handler, unless it already succeeded for this event. Throws the handler's error. */
  once<T>(key: ReceiptKey, handler: () => T | Promise<T>): Promise<OnceResult<T>>;
}

/** Stores claims and receipts. Implement it for another database, and pass it to `handleOnce`. */
export interface ReceiptStore {
  /** Returns `taken` to one caller only, until that caller settles, releases, or its claim expires. `token` identifies the claim. */
  claim(key: ReceiptKey, token: string): Promise<'taken' | 'duplicate' | 'in_progress'>;
  /** Records that the event was handled. */
  settle(key: ReceiptKey, token: string): Promise<void>;
  /** Gives the claim back after the handler failed. */
  release(key: ReceiptKey, token: string): Promise<void>;
}

/** Runs the handler once per key, with the store's claims and receipts. Throws the handler's error. */
export async function handleOnce<T>(
  store: ReceiptStore,
  key: ReceiptKey,
  handler: () => T | Promise<T>,
): Promise<OnceResult<T>> {
  const token = crypto.randomUUID();
  const status = await store.claim(key, token);
  if (status !== 'taken') return { status };
  let result: T;
  try {
    result = await handler();
  } catch (error) {
    // If the release fails too, the claim expires. The caller needs the handler's error.
    await store.release(key, token).catch(() => {});
    throw error;
  }
  await store.settle(key, token);
  return { status: 'handled', result };
}
