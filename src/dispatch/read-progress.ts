/**
 * What of a lane's rows in the database is in memory, and what a read that is under way may claim when it ends: the
 * lane goes on meanwhile, and a read shows what was, not what is.
 *
 *   fresh   `moreFresh`: rows beyond `freshCursor` may exist that are not in memory
 *   retry   `retryHorizon`: every row that is due earlier is in memory; later ones may not be
 */
import type { Uuid } from '../domain/ids.ts';

export class ReadProgress {
  moreFresh = true;
  freshCursor = 0;
  retryHorizon = 0;
  /** A read of this lane is under way. */
  loading = false;

  /** What left the lane while a read was under way: the read may still show it, as it was before. */
  #left = new Set<Uuid>();
  /** The earliest due time that was let go of while a read was under way: the read does not bring it back. */
  #lowestLetGo = Number.POSITIVE_INFINITY;
  #freshMissed = false;
  #forgotAll = false;

  /** Nothing that may be missing. */
  get complete(): boolean {
    return !this.moreFresh && this.retryHorizon === Number.POSITIVE_INFINITY;
  }

  /** A fresh one that was not taken into memory: it stays in the database, somewhere after `cursor`. */
  missedFresh(cursor: number): void {
    if (!this.moreFresh) this.freshCursor = cursor;
    this.moreFresh = true;
    if (this.loading) this.#freshMissed = true;
  }

  /** One with a due time that was not taken, or not kept, in memory. */
  missedRetry(dueAt: number): void {
    this.retryHorizon = Math.min(this.retryHorizon, dueAt);
    if (this.loading) this.#lowestLetGo = Math.min(this.#lowestLetGo, dueAt);
  }

  started(): void {
    this.loading = true;
    this.#lowestLetGo = Number.POSITIVE_INFINITY;
    this.#freshMissed = false;
    this.#forgotAll = false;
  }

  /** The queue was cleared since the read began: what it brings has holes, and is left alone. */
  get isVoid(): boolean {
    return this.#forgotAll;
  }

  /** Fresh rows were read from their place in the order up to `cursor`; `complete`: there were no more. */
  freshRead(cursor: number, complete: boolean): void {
    this.moreFresh = !complete || this.#freshMissed;
    this.freshCursor = cursor;
  }

  /** Rows due from `from` on were read, up to the last one's time, or all of them. */
  retriesRead(from: number, lastDueAt: number, complete: boolean): void {
    // The horizon sank below the start of the read meanwhile: the gap is still unread.
    if (this.retryHorizon < from) return;
    // Not as far as the horizon was: a read that begins before it looks for what is new there, and has not seen the rest.
    const reached = complete ? Number.POSITIVE_INFINITY : lastDueAt;
    this.retryHorizon = Math.min(reached, this.#lowestLetGo);
  }

  ended(): void {
    this.loading = false;
    this.#left = new Set();
  }

  left(id: Uuid): void {
    if (this.loading) this.#left.add(id);
  }

  hasLeft(id: Uuid): boolean {
    return this.#left.has(id);
  }

  /** The lane has forgotten everything that was queued. */
  forgotAll(): void {
    this.moreFresh = true;
    this.freshCursor = 0;
    this.retryHorizon = 0;
    this.#forgotAll = this.loading;
  }
}
