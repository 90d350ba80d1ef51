/**
 * Deliveries by the time at which they are due. One that is given another time is pushed again, and its old entry
 * stays where it is until it comes to the top: looking for it would cost more than it does.
 */
import { Heap } from '../domain/heap.ts';
import { dueTime, type LaneItem } from './lane-item.ts';

interface Entry {
  readonly item: LaneItem;
  readonly dueAt: number;
}

export class RetryQueue {
  /** Whether the lane still has it, and has it waiting. */
  readonly #waits: (item: LaneItem) => boolean;
  #heap = emptyHeap();
  /** Entries of those that were given another time: still in the heap, at the old one. */
  #moved = 0;
  /** None in the heap is due later than this. */
  #latestDueAt = 0;

  constructor(waits: (item: LaneItem) => boolean) {
    this.#waits = waits;
  }

  get size(): number {
    return this.#heap.size - this.#moved;
  }

  /** When the first is due; infinity: there is none. */
  get firstDueAt(): number {
    return this.#first()?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  push(item: LaneItem): void {
    this.#heap.push({ item, dueAt: dueTime(item) });
    this.#latestDueAt = Math.max(this.#latestDueAt, item.delivery.dueAt ?? 0);
  }

  /** It is in here already, and has been given another time. */
  move(item: LaneItem): void {
    this.#moved += 1;
    this.push(item);
  }

  /** The first that is due by now, left where it is. */
  due(now: number): LaneItem | null {
    const entry = this.#first();
    return entry !== undefined && entry.dueAt <= now ? entry.item : null;
  }

  /** Takes out what `due` has just shown. */
  removeFirst(): void {
    this.#heap.pop();
  }

  /** Takes out all that are due after a time. */
  removeAfter(time: number): LaneItem[] {
    if (this.#latestDueAt <= time) return [];
    this.#latestDueAt = 0;
    const kept: LaneItem[] = [];
    const removed: LaneItem[] = [];
    for (let entry = this.#first(); entry !== undefined; entry = this.#first()) {
      this.#heap.pop();
      const { dueAt } = entry.item.delivery;
      if (dueAt !== null && dueAt > time) removed.push(entry.item);
      else kept.push(entry.item);
    }
    for (const item of kept) this.push(item);
    return removed;
  }

  clear(): void {
    this.#heap = emptyHeap();
    this.#moved = 0;
    this.#latestDueAt = 0;
  }

  /** Entries whose delivery was given another time, or has been taken, are dropped on the way. */
  #first(): Entry | undefined {
    for (;;) {
      const entry = this.#heap.peek();
      if (entry === undefined) return undefined;
      if (dueTime(entry.item) === entry.dueAt && this.#waits(entry.item)) return entry;
      this.#heap.pop();
      this.#moved -= 1;
    }
  }
}

const emptyHeap = (): Heap<Entry> => new Heap<Entry>((a, b) => a.dueAt < b.dueAt);
