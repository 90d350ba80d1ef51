/**
 * Records which of a lane's stored deliveries are in memory. The lane keeps changing while a read runs, so the rows that
 * a read returns may be older than what the lane knows.
 *
 *   fresh   `hasMoreFresh`: deliveries beyond `freshCursor` may be in the store and not in memory
 *   retry   `retryHorizon`: every delivery that is due earlier is in memory; later ones may not be
 */
import type { Uuid } from '../domain/ids.ts';

export class ReadProgress {
  hasMoreFresh = true;
  freshCursor = 0;
  retryHorizon = 0;
  /** True while this lane is being read. */
  isLoading = false;

  /**
   * Deliveries that left the lane during the read: the read may still return them in their old state. Null: none did.
   */
  #removedIds: Set<Uuid> | null = null;
  /** The earliest due time of deliveries that were left in the store during the read: the read may not contain them. */
  #earliestLeftInStore = Number.POSITIVE_INFINITY;
  #hasLeftFreshInStore = false;
  #wasReset = false;

  /** True if every stored delivery is in memory. */
  get isComplete(): boolean {
    return !this.hasMoreFresh && this.retryHorizon === Number.POSITIVE_INFINITY;
  }

  /** Records that a fresh delivery was not taken into memory. It is in the store, somewhere after `cursor`. */
  leaveFreshInStore(cursor: number): void {
    if (!this.hasMoreFresh) this.freshCursor = cursor;
    this.hasMoreFresh = true;
    if (this.isLoading) this.#hasLeftFreshInStore = true;
  }

  /** Records that a scheduled delivery was not taken into memory, or was dropped from it. */
  leaveRetryInStore(dueAt: number): void {
    this.retryHorizon = Math.min(this.retryHorizon, dueAt);
    if (this.isLoading) this.#earliestLeftInStore = Math.min(this.#earliestLeftInStore, dueAt);
  }

  begin(): void {
    this.isLoading = true;
    this.#earliestLeftInStore = Number.POSITIVE_INFINITY;
    this.#hasLeftFreshInStore = false;
    this.#wasReset = false;
  }

  /** True if the queue was cleared since the read began: ignore what it returns. */
  get isStale(): boolean {
    return this.#wasReset;
  }

  /** Records that fresh deliveries were read up to `cursor`. `complete`: there are no more. */
  recordFresh(cursor: number, complete: boolean): void {
    this.hasMoreFresh = !complete || this.#hasLeftFreshInStore;
    this.freshCursor = cursor;
  }

  /** Records that deliveries due from `from` to `lastDueAt` were read, or (`complete`) all from `from` on. */
  recordRetries(from: number, lastDueAt: number, complete: boolean): void {
    // During the read the horizon moved below its start: deliveries in between are still unread.
    if (this.retryHorizon < from) return;
    // The horizon may move back: a read that starts below it looks for new deliveries and may stop before the old
    // horizon.
    const reached = complete ? Number.POSITIVE_INFINITY : lastDueAt;
    this.retryHorizon = Math.min(reached, this.#earliestLeftInStore);
  }

  end(): void {
    this.isLoading = false;
    this.#removedIds = null;
  }

  recordRemoved(id: Uuid): void {
    if (!this.isLoading) return;
    this.#removedIds ??= new Set();
    this.#removedIds.add(id);
  }

  wasRemoved(id: Uuid): boolean {
    return this.#removedIds?.has(id) ?? false;
  }

  /** Call this when the lane has forgotten all queued deliveries. */
  reset(): void {
    this.hasMoreFresh = true;
    this.freshCursor = 0;
    this.retryHorizon = 0;
    this.#wasReset = this.isLoading;
  }
}
