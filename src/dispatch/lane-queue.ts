/**
 * The deliveries of one lane in memory, in the order in which they are sent. Knows deliveries in flight and unsettled
 * ones too, so that loading a delivery again does not queue it twice.
 *
 * FIFO lanes keep everything in `fresh`, retries included: the head's retry blocks the rest.
 */
import type { Uuid } from '../domain/ids.ts';
import { EarlierRequests } from './earlier-requests.ts';
import { FreshQueue } from './fresh-queue.ts';
import type { LaneMemory } from './lane-budget.ts';
import type { LaneItem } from './lane-item.ts';
import { ReadProgress } from './read-progress.ts';
import { RetryQueue } from './retry-queue.ts';

export class LaneQueue {
  fifo: boolean;
  readonly fresh = new FreshQueue();
  readonly retries = new RetryQueue(
    (item) => item.state === 'queued' && this.#known.get(item.delivery.id) === item,
  );
  /** Which of the stored deliveries are in memory. */
  readonly read = new ReadProgress();
  readonly earlierRequests = new EarlierRequests();
  readonly #known = new Map<Uuid, LaneItem>();
  readonly #memory: LaneMemory;

  constructor(fifo: boolean, memory: LaneMemory) {
    this.fifo = fifo;
    this.#memory = memory;
  }

  /** Deliveries in memory, in any state. */
  get size(): number {
    return this.#known.size;
  }

  has(id: Uuid): boolean {
    return this.#known.has(id);
  }

  /** Deliveries in flight or unsettled. */
  get underWay(): LaneItem[] {
    return [...this.#known.values()].filter((item) => item.state !== 'queued');
  }

  /** Queues a fresh delivery. The caller has checked that there is room. Returns false if it is known already. */
  addFresh(item: LaneItem): boolean {
    const known = this.#known.get(item.delivery.id);
    // A replay changes the due time of a FIFO lane's head.
    if (known !== undefined && this.fifo) {
      if (isNewer(item, known)) known.delivery = item.delivery;
      else if (wasReplayed(item, known)) this.read.leaveFreshInStore(0);
    }
    if (known !== undefined || this.read.wasRemoved(item.delivery.id)) return false;
    this.#remember(item);
    // A delivery that must wait does not block those behind it, except in a FIFO lane.
    if (!this.fifo && (item.notBefore > 0 || item.delivery.dueAt !== null)) {
      this.retries.push(item);
      return true;
    }
    this.fresh.push(item);
    if (this.fifo) this.fresh.putInOrder();
    return true;
  }

  /** Queues a scheduled delivery, or moves one that is queued already and has a new due time. */
  addRetry(item: LaneItem): boolean {
    const { id } = item.delivery;
    const known = this.#known.get(id);
    if (known !== undefined) {
      if (wasReplayed(item, known)) this.read.leaveRetryInStore(item.delivery.dueAt ?? 0);
      if (this.fifo || !isNewer(item, known)) return false;
      if (known.delivery.dueAt === null && known.notBefore === 0) {
        // It is in the fresh queue, due already. In both queues it would be sent twice.
        known.delivery = { ...item.delivery, dueAt: null };
        return true;
      }
      known.delivery = item.delivery;
      this.retries.move(known);
      return true;
    }
    if (this.read.wasRemoved(id)) return false;
    this.#remember(item);
    this.retries.push(item);
    return true;
  }

  /** Queues a delivery again, at the head where it came from the head. */
  requeue(item: LaneItem): void {
    item.state = 'queued';
    item.probe = false;
    if (this.fifo || (item.delivery.dueAt === null && item.notBefore === 0)) this.fresh.putFirst(item);
    else this.retries.push(item);
  }

  dropPayload(item: LaneItem): void {
    if (item.event === null) return;
    if (this.#known.get(item.delivery.id) === item) this.#memory.bytes -= item.event.data.length;
    item.event = null;
  }

  forget(item: LaneItem): void {
    this.dropPayload(item);
    if (this.#known.delete(item.delivery.id)) this.#memory.items -= 1;
    this.read.recordRemoved(item.delivery.id);
  }

  /** Forgets all queued deliveries. Those in flight or unsettled stay. */
  clear(): void {
    for (const item of this.#known.values()) if (item.state === 'queued') this.forget(item);
    this.fresh.clear();
    this.retries.clear();
    this.read.reset();
  }

  /** Makes room for retries that are due earlier. The dropped ones are beyond the horizon and will be loaded again. */
  dropRetriesBeyondHorizon(): void {
    for (const item of this.retries.removeAfter(this.read.retryHorizon)) {
      this.read.leaveRetryInStore(item.delivery.dueAt!);
      this.forget(item);
    }
  }

  /** Gives back all memory. Requests in flight end outside of any lane. */
  close(): void {
    for (const item of this.#known.values()) {
      this.#memory.items -= 1;
      this.#memory.bytes -= item.event?.data.length ?? 0;
    }
    this.#known.clear();
  }

  #remember(item: LaneItem): void {
    this.#known.set(item.delivery.id, item);
    this.#memory.items += 1;
    this.#memory.bytes += item.event?.data.length ?? 0;
    if (item.notBefore > 0) this.earlierRequests.add(item.delivery.id, item.notBefore);
  }
}

/** True if a loaded row changes the due time of a queued delivery. The row may be older than its last attempt. */
function isNewer(loaded: LaneItem, known: LaneItem): boolean {
  return (
    known.state === 'queued' &&
    loaded.delivery.attempts >= known.delivery.attempts &&
    loaded.delivery.dueAt !== known.delivery.dueAt
  );
}

/** True if the delivery ended and was replayed before its lane knows of the end: it must be loaded again. */
function wasReplayed(loaded: LaneItem, known: LaneItem): boolean {
  return (
    known.state === 'unsettled' &&
    loaded.delivery.trigger === 'replay' &&
    loaded.delivery.attempts > known.delivery.attempts
  );
}
