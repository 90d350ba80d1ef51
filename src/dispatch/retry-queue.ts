/**
 * Scheduled deliveries in order of due time. A delivery whose due time changes is pushed again; its old entry stays in
 * the heap until it reaches the top, because searching for it would cost more.
 */
import { Heap } from '../domain/heap.ts';
import { dueTime, type LaneItem } from './lane-item.ts';

interface Entry {
  readonly item: LaneItem;
  readonly dueAt: number;
}

/** The lane that the queue belongs to. */
interface RetryLane {
  /** True if the lane still has the delivery queued as a retry. */
  isQueuedRetry(item: LaneItem): boolean;
}

export class RetryQueue {
  readonly #owner: RetryLane;
  /** Null: nothing was queued yet, as in most lanes. */
  #heap: Heap<Entry> | null = null;
  /** Outdated entries in the heap. */
  #outdated = 0;
  /** No delivery in the heap is due later than this. */
  #latestDueAt = 0;

  constructor(owner: RetryLane) {
    this.#owner = owner;
  }

  get size(): number {
    return (this.#heap?.size ?? 0) - this.#outdated;
  }

  /** When the first delivery is due. Infinity if nothing waits. */
  get firstDueAt(): number {
    return this.#first()?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  push(item: LaneItem): void {
    this.#heap ??= new Heap(isDueBefore);
    this.#heap.push({ item, dueAt: dueTime(item) });
    this.#latestDueAt = Math.max(this.#latestDueAt, item.delivery.dueAt ?? 0);
  }

  /** Moves a delivery in the queue to its new due time. */
  move(item: LaneItem): void {
    this.#outdated += 1;
    this.push(item);
  }

  /** Call this when a delivery left the queue without `removeFirst`: `isQueuedRetry` must return false for it now. */
  recordDetached(): void {
    this.#outdated += 1;
  }

  /** The first delivery that is due by now. Does not remove it. */
  findDue(now: number): LaneItem | null {
    const entry = this.#first();
    return entry !== undefined && entry.dueAt <= now ? entry.item : null;
  }

  /** Removes the delivery that `findDue` has just returned. */
  removeFirst(): void {
    this.#heap?.pop();
  }

  /** Removes all deliveries that are due after `time`, and returns them. */
  removeAfter(time: number): LaneItem[] {
    if (this.#latestDueAt <= time) return [];
    this.#latestDueAt = 0;
    const kept: LaneItem[] = [];
    const removed: LaneItem[] = [];
    for (let entry = this.#first(); entry !== undefined; entry = this.#first()) {
      this.#heap!.pop();
      const { dueAt } = entry.item.delivery;
      if (dueAt !== null && dueAt > time) removed.push(entry.item);
      else kept.push(entry.item);
    }
    for (const item of kept) this.push(item);
    return removed;
  }

  clear(): void {
    this.#heap = null;
    this.#outdated = 0;
    this.#latestDueAt = 0;
  }

  /** Drops outdated entries on the way. */
  #first(): Entry | undefined {
    for (;;) {
      const entry = this.#heap?.peek();
      if (entry === undefined) return undefined;
      if (dueTime(entry.item) === entry.dueAt && this.#owner.isQueuedRetry(entry.item)) return entry;
      this.#heap!.pop();
      this.#outdated -= 1;
    }
  }
}

const isDueBefore = (a: Entry, b: Entry): boolean => a.dueAt < b.dueAt;
