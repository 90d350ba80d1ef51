/**
 * Why a store refused or failed a call, in terms of what the caller must do next. Every implementation of a port throws
 * `StoreError`; stages never look at SQLSTATEs or message texts.
 */
export type StoreFailure =
  /** A value in the batch cannot be stored. The other rows are fine: bisect. */
  | 'invalid_row'
  /** The data of an event's tenant is being deleted. The other rows are fine: bisect. */
  | 'closed_tenant'
  /** No partition covers the time in an id: create one, then repeat the call. */
  | 'missing_partition'
  /** Another process owns the Kafka partition that the events come from. Nothing was written: stop reading it. */
  | 'fenced'
  /** Deadlock, serialization failure or lock timeout. Nothing was written: repeat the call. */
  | 'conflict'
  /** The statement took too long and was cancelled. Nothing was written: a smaller batch may succeed. */
  | 'timeout'
  /** The connection broke before the answer arrived. The write may or may not be committed. */
  | 'outcome_unknown'
  /** The store is starting, stopping, full, read only or out of connections. Nothing was written. */
  | 'unavailable'
  /** Anything else. Repeating the same call will probably fail again. */
  | 'other';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.failure = failure;
  }
}

/** Any error other than a `StoreError` counts as `outcome_unknown`, which is the safe assumption about a write. */
export function storeFailureOf(error: unknown): StoreFailure {
  return error instanceof StoreError ? error.failure : 'outcome_unknown';
}

const OUTAGES: ReadonlySet<StoreFailure> = new Set(['conflict', 'timeout', 'outcome_unknown', 'unavailable']);

/** True if the call failed because the store is unavailable, overloaded or locked, and not because of its values. */
export function isStoreOutage(error: unknown): boolean {
  return error instanceof StoreError && OUTAGES.has(error.failure);
}
