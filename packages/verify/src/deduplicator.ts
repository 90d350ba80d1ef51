/**
 * At least once on the wire, once in effect. A receipt is written only after the handler succeeded: a handler that
 * failed, or a process that died in it, gets the event again.
 *
 *   claim ─▶ taken ─▶ handler ─▶ settle (handled)
 *     │                  └─ throws ─▶ release, and the error goes on to the caller
 *     ├─▶ duplicate:   handled before. Answer 2xx, do nothing.
 *     └─▶ in_progress: another request with the same event is in its handler now. Answer 503: the sender comes
 *                      again, and then it is a duplicate, or the first one failed and it is this one's turn.
 */
export interface ReceiptKey {
  /** Who handles it: an event may go to several handlers, each of which has to see it once. */
  readonly subscriber: string;
  readonly eventId: string;
}

export type OnceResult<T> =
  | { readonly status: 'handled'; readonly result: T }
  | { readonly status: 'duplicate' }
  | { readonly status: 'in_progress' };

export interface Deduplicator {
  /** Runs the handler unless it has run for this event with success. */
  once<T>(key: ReceiptKey, handler: () => T | Promise<T>): Promise<OnceResult<T>>;
}

/** Where claims and receipts are kept. Implement this for another database, and give it to `handleOnce`. */
export interface ReceiptStore {
  /** `token` names this claim. `taken` to one caller only until it settles, releases or its time is up. */
  claim(key: ReceiptKey, token: string): Promise<'taken' | 'duplicate' | 'in_progress'>;
  settle(key: ReceiptKey, token: string): Promise<void>;
  release(key: ReceiptKey, token: string): Promise<void>;
}

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
    // If this fails too the claim runs out by itself; the handler's error is the one to see.
    await store.release(key, token).catch(() => {});
    throw error;
  }
  await store.settle(key, token);
  return { status: 'handled', result };
}
