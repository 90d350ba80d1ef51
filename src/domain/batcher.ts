/**
 * Group commit: items that are added while a batch is being written form the next batch. An idle system adds no latency,
 * and a busy one shares each commit among hundreds of items. Items without a waiting caller may linger to share a batch
 * (`linger`).
 */
import type { Clock } from './clock.ts';

export interface BatcherOptions<T> {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly bytesOf: (item: T) => number;
  /** Removes the items that another path writes. Returns the others. */
  readonly divert?: ((items: T[]) => T[]) | undefined;
  /** Writes one batch and passes each item its result. Must not reject. */
  readonly write: (items: T[]) => Promise<void>;
  /** Items for which `canWait` is true wait up to `ms` for others to share their batch. Any other item ends the wait. */
  readonly linger?:
    | {
        readonly ms: number;
        readonly clock: Pick<Clock, 'after'>;
        canWait(item: T): boolean;
      }
    | undefined;
  /** Called after each batch: number of items, how long the first of them waited, how long writing took. */
  readonly onWritten?: ((items: number, waitedMs: number, tookMs: number) => void) | undefined;
}

export class Batcher<T> {
  readonly #options: BatcherOptions<T>;
  #waiting: T[] = [];
  #waitingBytes = 0;
  #waitingSince = 0;
  #isWriting = false;
  #isScheduled = false;
  /** False while all waiting items linger. */
  #isDue = false;
  #cancelLinger: (() => void) | null = null;
  #idleWaiters: (() => void)[] = [];

  constructor(options: BatcherOptions<T>) {
    this.#options = options;
  }

  get waitingItems(): number {
    return this.#waiting.length;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** How long the first of the waiting items has waited. 0: none waits. */
  get waitedMs(): number {
    return this.#waiting.length === 0 ? 0 : performance.now() - this.#waitingSince;
  }

  add(item: T): void {
    if (this.#waiting.push(item) === 1) this.#waitingSince = performance.now();
    this.#waitingBytes += this.#options.bytesOf(item);
    if (this.#isDue || !this.#canLinger(item)) this.#writeSoon();
    else
      this.#cancelLinger ??= this.#options.linger!.clock.after(this.#options.linger!.ms, () =>
        this.#writeSoon(),
      );
  }

  /** Resolves when no item waits and none is being written. */
  async waitUntilIdle(): Promise<void> {
    if (!this.#isWriting && this.#waiting.length === 0) return;
    if (this.#waiting.length > 0) this.#writeSoon();
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  #canLinger(item: T): boolean {
    const { linger, maxItems, maxBytes } = this.#options;
    if (linger === undefined || linger.ms === 0 || this.#idleWaiters.length > 0) return false;
    return this.#waiting.length < maxItems && this.#waitingBytes < maxBytes && linger.canWait(item);
  }

  #writeSoon(): void {
    this.#isDue = true;
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    // After the current turn of the event loop, so that requests of the same socket read share a batch.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#writeNext();
    });
  }

  #writeNext(): void {
    const startedAt = performance.now();
    const waitedMs = startedAt - this.#waitingSince;
    const taken = this.#takeBatch();
    if (taken.length === 0) return;
    this.#isDue = this.#waiting.length > 0;
    const batch = this.#options.divert?.(taken) ?? taken;
    if (batch.length === 0) return this.#continue();
    this.#isWriting = true;
    void this.#options.write(batch).then(() => {
      this.#options.onWritten?.(batch.length, waitedMs, performance.now() - startedAt);
      this.#isWriting = false;
      this.#continue();
    });
  }

  #continue(): void {
    if (this.#isDue) this.#schedule();
    else if (this.#waiting.length === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #takeBatch(): T[] {
    const { maxItems, maxBytes, bytesOf } = this.#options;
    if (this.#waiting.length <= maxItems && this.#waitingBytes <= maxBytes) {
      const all = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      return all;
    }
    let count = 0;
    let bytes = 0;
    while (count < this.#waiting.length && count < maxItems) {
      const size = bytesOf(this.#waiting[count]!);
      // Take the first item even if it is too large, or it would wait forever.
      if (count > 0 && bytes + size > maxBytes) break;
      bytes += size;
      count += 1;
    }
    this.#waitingBytes -= bytes;
    // An estimate: the remaining items have waited longer, but their times are not recorded.
    this.#waitingSince = performance.now();
    return this.#waiting.splice(0, count);
  }
}
