/**
 * Records which of a lane's stored deliveries are in memory. The lane keeps changing while a read runs, so the rows that
 * a read returns may be older than what the lane knows.
 *
 *   fresh   `hasMoreFresh`: deliveries beyond `freshCursor` may be in the store and not in memory
 *   retry   `retryHorizon`: every delivery that is due earlier is in memory; later ones may not be
 */
import type { Uuid } from '../domain/ids.ts';

interface RunningRead {
  /** Deliveries that left the lane: the read may still return them in their old state. Null: none did. */
  removedIds: Set<Uuid> | null;
  /** The earliest due time of deliveries that were left in the store: the read may not contain them. */
  earliestLeftInStore: number;
  hasLeftFreshInStore: boolean;
  /** The queue was cleared. */
  isStale: boolean;
}

export class ReadProgress {
  hasMoreFresh = true;
  freshCursor = 0;
  retryHorizon = 0;
  /** When this worker took the lane over. The earlier owner may have sent deliveries that were committed before. 0: there was no earlier owner. */
  takenOverAt = 0;
  /** What happened to the lane during the read. Null: it is not being read. Most lanes are not, and take less memory. */
  #read: RunningRead | null = null;

  /** True while this lane is being read. */
  get isLoading(): boolean {
    return this.#read !== null;
  }

  /** True if every stored delivery is in memory. */
  get isComplete(): boolean {
    return !this.hasMoreFresh && this.retryHorizon === Number.POSITIVE_INFINITY;
  }

  /** Records that a fresh delivery was not taken into memory. It is in the store, somewhere after `cursor`. */
  leaveFreshInStore(cursor: number): void {
    if (!this.hasMoreFresh) this.freshCursor = cursor;
    this.hasMoreFresh = true;
    if (this.#read !== null) this.#read.hasLeftFreshInStore = true;
  }

  /** Records that a scheduled delivery was not taken into memory, or was dropped from it. */
  leaveRetryInStore(dueAt: number): void {
    this.retryHorizon = Math.min(this.retryHorizon, dueAt);
    const read = this.#read;
    if (read !== null) read.earliestLeftInStore = Math.min(read.earliestLeftInStore, dueAt);
  }

  begin(): void {
    this.#read = {
      removedIds: null,
      earliestLeftInStore: Number.POSITIVE_INFINITY,
      hasLeftFreshInStore: false,
      isStale: false,
    };
  }

  /** True if the queue was cleared since the read began: ignore what it returns. */
  get isStale(): boolean {
    return this.#read?.isStale ?? false;
  }

  /** True if a fresh delivery was left in the store since the read began: the read may not return it. */
  get hasMissedFresh(): boolean {
    return this.#read?.hasLeftFreshInStore ?? false;
  }

  /** Records that fresh deliveries were read up to `cursor`. `complete`: there are no more. */
  recordFresh(cursor: number, complete: boolean): void {
    this.hasMoreFresh = !complete || this.hasMissedFresh;
    this.freshCursor = cursor;
  }

  /** Records that deliveries due from `from` to `lastDueAt` were read, or (`complete`) all from `from` on. */
  recordRetries(from: number, lastDueAt: number, complete: boolean): void {
    // While the read ran, the horizon moved to before its start. The deliveries in between are still unread, so the horizon stays.
    if (this.retryHorizon < from) return;
    // This read may have started before the horizon, to find new deliveries. If it also ended before the horizon, the horizon
    // moves back to there.
    const reached = complete ? Number.POSITIVE_INFINITY : lastDueAt;
    this.retryHorizon = Math.min(reached, this.#read?.earliestLeftInStore ?? reached);
  }

  end(): void {
    this.#read = null;
  }

  recordRemoved(id: Uuid): void {
    if (this.#read === null) return;
    this.#read.removedIds ??= new Set();
    this.#read.removedIds.add(id);
  }

  wasRemoved(id: Uuid): boolean {
    return this.#read?.removedIds?.has(id) ?? false;
  }

  /** Call this when the lane has forgotten all queued deliveries. */
  reset(): void {
    this.hasMoreFresh = true;
    this.freshCursor = 0;
    this.retryHorizon = 0;
    if (this.#read !== null) this.#read.isStale = true;
  }
}
