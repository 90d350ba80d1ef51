/** The fresh deliveries of a lane, first in, first out. FIFO lanes also sort them by acceptance number. */
import type { LaneItem } from './lane-item.ts';

/** Compact the array once this many places before the head are empty. */
const COMPACT_AFTER = 1024;

/** Shared by all empty queues, which most are. Nothing is ever added to it. */
const NO_ITEMS: LaneItem[] = [];

export class FreshQueue {
  #items = NO_ITEMS;
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  get head(): LaneItem | undefined {
    return this.#items[this.#head];
  }

  push(item: LaneItem): void {
    if (this.#items === NO_ITEMS) this.#items = [item];
    else this.#items.push(item);
  }

  shift(): LaneItem | null {
    const item = this.#items[this.#head];
    if (item === undefined) return null;
    this.#head += 1;
    if (this.#head === this.#items.length) this.clear();
    else if (this.#head > COMPACT_AFTER) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Returns false if the item is not in this queue. */
  remove(item: LaneItem): boolean {
    const index = this.#items.indexOf(item, this.#head);
    if (index < 0) return false;
    this.#items.splice(index, 1);
    return true;
  }

  putFirst(item: LaneItem): void {
    if (this.#head > 0) {
      this.#head -= 1;
      this.#items[this.#head] = item;
      return;
    }
    this.#items = [item, ...this.#items];
  }

  /**
   * Sorts by acceptance number: a batch that took its numbers first may be committed last. A head that was attempted
   * keeps its place.
   */
  putInOrder(): void {
    const queue = this.#items;
    const first = queue[this.#head]!.delivery.attempts > 0 ? this.#head + 1 : this.#head;
    // Only the delivery that was just added can be out of place, at either end.
    for (let i = queue.length - 1; i > first && isLater(queue[i - 1]!, queue[i]!); i -= 1) swap(queue, i);
    for (let i = first + 1; i < queue.length && isLater(queue[i - 1]!, queue[i]!); i += 1) swap(queue, i);
  }

  /** Sorts by acceptance number after several deliveries were put back. A head that was attempted keeps its place. */
  sort(): void {
    const queue = this.#items.slice(this.#head);
    const attempted = queue.splice(0, (queue[0]?.delivery.attempts ?? 0) > 0 ? 1 : 0);
    this.#items = [...attempted, ...queue.sort((a, b) => a.delivery.seq - b.delivery.seq)];
    this.#head = 0;
  }

  clear(): void {
    this.#items = NO_ITEMS;
    this.#head = 0;
  }
}

const isLater = (a: LaneItem, b: LaneItem): boolean => a.delivery.seq > b.delivery.seq;

function swap(queue: LaneItem[], i: number): void {
  const item = queue[i]!;
  queue[i] = queue[i - 1]!;
  queue[i - 1] = item;
}
