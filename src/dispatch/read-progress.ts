/**
 * Which of a lane's stored deliveries are in memory. A read takes time, and the lane goes on meanwhile: what a read
 * returns is older than what the lane knows.
 *
 *   fresh   `moreFresh`: deliveries beyond `freshCursor` may be in the store and not in memory
 *   retry   `retryHorizon`: every delivery that is due earlier is in memory; later ones may not be
 */
import type { Uuid } from '../domain/ids.ts';

export class ReadProgress {
  moreFresh = true;
  freshCursor = 0;
  retryHorizon = 0;
  /** True while this lane is being read. */
  isLoading = false;

  /** Removed from the lane during the read: the read may still return them in their old state. */
  #removed = new Set<Uuid>();
  /** The earliest due time that was left in the store during the read: the read may not contain it. */
  #lowestLeft = Number.POSITIVE_INFINITY;
  #leftFresh = false;
  #wasReset = false;

  /** True if every stored delivery is in memory. */
  get isComplete(): boolean {
    return !this.moreFresh && this.retryHorizon === Number.POSITIVE_INFINITY;
  }

  /** A fresh delivery was not taken into memory. It is in the store, somewhere after `cursor`. */
  leaveFreshInStore(cursor: number): void {
    if (!this.moreFresh) this.freshCursor = cursor;
    this.moreFresh = true;
    if (this.isLoading) this.#leftFresh = true;
  }

  /** A scheduled delivery was not taken into memory, or not kept there. */
  leaveRetryInStore(dueAt: number): void {
    this.retryHorizon = Math.min(this.retryHorizon, dueAt);
    if (this.isLoading) this.#lowestLeft = Math.min(this.#lowestLeft, dueAt);
  }

  begin(): void {
    this.isLoading = true;
    this.#lowestLeft = Number.POSITIVE_INFINITY;
    this.#leftFresh = false;
    this.#wasReset = false;
  }

  /** True if the queue was cleared since the read began: ignore what it returns. */
  get isStale(): boolean {
    return this.#wasReset;
  }

  /** Fresh deliveries were read up to `cursor`. `complete`: there were no more. */
  recordFresh(cursor: number, complete: boolean): void {
    this.moreFresh = !complete || this.#leftFresh;
    this.freshCursor = cursor;
  }

  /** Deliveries due at `from` or later were read up to `lastDueAt`, or (`complete`) all of them. */
  recordRetries(from: number, lastDueAt: number, complete: boolean): void {
    // The horizon moved below the start of the read meanwhile: what lies between is still unread.
    if (this.retryHorizon < from) return;
    // The new horizon may be lower than before: a read below it looks for new deliveries and has not seen the rest.
    const reached = complete ? Number.POSITIVE_INFINITY : lastDueAt;
    this.retryHorizon = Math.min(reached, this.#lowestLeft);
  }

  end(): void {
    this.isLoading = false;
    this.#removed = new Set();
  }

  recordRemoved(id: Uuid): void {
    if (this.isLoading) this.#removed.add(id);
  }

  wasRemoved(id: Uuid): boolean {
    return this.#removed.has(id);
  }

  /** The lane has forgotten all queued deliveries. */
  reset(): void {
    this.moreFresh = true;
    this.freshCursor = 0;
    this.retryHorizon = 0;
    this.#wasReset = this.isLoading;
  }
}
