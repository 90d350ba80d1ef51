/**
 * The deliveries of one lane in memory, in the order in which they are sent. Also contains deliveries in flight and
 * unsettled ones, so that loading a delivery again does not queue it twice.
 *
 * FIFO lanes keep everything in `fresh`, retries included: the head's retry blocks the rest.
 */
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import { TurnoverMap } from '../domain/turnover-map.ts';
import { EarlierRequests } from './earlier-requests.ts';
import { FreshQueue } from './fresh-queue.ts';
import type { AdoptedBatch } from './lane-batches.ts';
import type { LaneMemory } from './lane-budget.ts';
import { dueTime, type LaneItem, requestDueTime } from './lane-item.ts';
import { ReadProgress } from './read-progress.ts';
import { RetryQueue } from './retry-queue.ts';

const NO_EARLIER_REQUESTS = new EarlierRequests();

export class LaneQueue {
  fifo: boolean;
  readonly fresh = new FreshQueue();
  readonly retries = new RetryQueue(this);
  /** The requested probe of a lane that is not FIFO. It is in no other queue. */
  requested: LaneItem | null = null;
  /** Which of the stored deliveries are in memory. */
  readonly readProgress = new ReadProgress();
  /** Batches that an earlier owner may have on the wire, by delivery. Null: there are none, as in most lanes. */
  adopted: Map<Uuid, AdoptedBatch> | null = null;
  /** Null: there never were any, as in most lanes. */
  #earlierRequests: EarlierRequests | null = null;
  /** Null while the lane is empty, as most lanes are. */
  #itemsById: TurnoverMap<Uuid, LaneItem> | null = null;
  readonly #memory: LaneMemory;

  constructor(fifo: boolean, memory: LaneMemory) {
    this.fifo = fifo;
    this.#memory = memory;
  }

  setFifo(fifo: boolean): void {
    // When a lane becomes FIFO, the next load brings all deliveries in order.
    if (fifo && !this.fifo) this.cancelRequest();
    this.fifo = fifo;
  }

  /** Requests of an earlier owner that may be on the wire. */
  get earlierRequests(): Pick<EarlierRequests, 'placeFreeAt'> {
    return this.#earlierRequests ?? NO_EARLIER_REQUESTS;
  }

  isQueuedRetry(item: LaneItem): boolean {
    return (
      item.state === 'queued' && this.#itemsById?.get(item.delivery.id) === item && item !== this.requested
    );
  }

  /** Deliveries in memory, in any state. */
  get size(): number {
    return this.#itemsById?.size ?? 0;
  }

  get(id: Uuid): LaneItem | undefined {
    return this.#itemsById?.get(id);
  }

  has(id: Uuid): boolean {
    return this.#itemsById?.has(id) ?? false;
  }

  /** Deliveries in flight or unsettled. */
  get underWay(): LaneItem[] {
    return [...(this.#itemsById?.values() ?? [])].filter((item) => item.state !== 'queued');
  }

  get queued(): LaneItem[] {
    return [...(this.#itemsById?.values() ?? [])].filter((item) => item.state === 'queued');
  }

  /** Queues a fresh delivery. The caller has checked that there is room. Returns false if it is known already. */
  addFresh(item: LaneItem): boolean {
    const known = this.#itemsById?.get(item.delivery.id);
    // A replay changes the due time of a FIFO lane's head.
    if (known !== undefined && this.fifo) {
      if (isNewer(item, known)) known.delivery = item.delivery;
      else if (wasReplayed(item, known)) this.readProgress.leaveFreshInStore(0);
    }
    if (known !== undefined || this.readProgress.wasRemoved(item.delivery.id)) return false;
    this.#addItem(item);
    // Only in a FIFO lane does a delivery that must wait block the deliveries behind it.
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
    const known = this.#itemsById?.get(id);
    if (known !== undefined && known === this.requested) {
      if (isNewer(item, known)) known.delivery = item.delivery;
      return true;
    }
    if (known !== undefined) {
      if (wasReplayed(item, known)) this.readProgress.leaveRetryInStore(item.delivery.dueAt ?? 0);
      if (this.fifo || !isNewer(item, known)) return false;
      if (known.delivery.dueAt === null && known.notBefore === 0) {
        // The delivery is in the fresh queue and due already. If it were in both queues, it would be sent twice.
        known.delivery = { ...item.delivery, dueAt: null };
        return true;
      }
      known.delivery = item.delivery;
      this.retries.move(known);
      return true;
    }
    if (this.readProgress.wasRemoved(id)) return false;
    this.#addItem(item);
    this.retries.push(item);
    return true;
  }

  /** Makes a delivery the requested probe. Ignores it if it is under way, or known with more attempts. */
  request(item: LaneItem): void {
    const known = this.#itemsById?.get(item.delivery.id);
    if (known === undefined && this.readProgress.wasRemoved(item.delivery.id)) return;
    if (known !== undefined) {
      if (known.state !== 'queued' || known.delivery.attempts > item.delivery.attempts) return;
      known.delivery = item.delivery;
      if (known === this.requested) return;
      if (!this.fresh.remove(known)) this.retries.recordDetached();
    } else {
      this.#addItem(item);
    }
    this.cancelRequest();
    this.requested = known ?? item;
    this.requested.isRequested = true;
  }

  /** Puts the requested probe back among the other deliveries. */
  cancelRequest(): void {
    const item = this.requested;
    if (item === null) return;
    this.requested = null;
    item.isRequested = false;
    this.requeue(item);
  }

  /** Queues a delivery again: a fresh one, and any of a FIFO lane, at the head. */
  requeue(item: LaneItem): void {
    item.state = 'queued';
    item.isProbe = false;
    if (item.isRequested && !this.fifo) {
      this.requested = item;
      return;
    }
    if (this.fifo || (item.delivery.dueAt === null && item.notBefore === 0)) this.fresh.putFirst(item);
    else this.retries.push(item);
  }

  /** Queues a delivery whose retry is recorded, or leaves it in the store. `hasRoom`: whether it may stay in memory. */
  reschedule(item: LaneItem, delivery: WaitingDelivery, hasRoom: boolean): void {
    item.delivery = delivery;
    item.notBefore = 0;
    item.crashes = 0;
    item.isStartCounted = false;
    const dueAt = delivery.dueAt ?? 0;
    // FIFO: it keeps its place at the head, whenever it is due.
    if (this.fifo || (dueAt < this.readProgress.retryHorizon && hasRoom)) return this.requeue(item);
    this.readProgress.leaveRetryInStore(dueAt);
    this.forget(item);
  }

  /**
   * Removes the next delivery of a kind from its queue and returns it. Null: none is due. A probe is the requested delivery
   * or else the oldest that is due, fresh or not.
   */
  shift(kind: 'fresh' | 'retry', now: number, isProbe: boolean): LaneItem | null {
    const { fresh, retries, requested } = this;
    if (kind === 'fresh' || this.fifo) return fresh.shift();
    if (requested !== null && requestDueTime(requested) <= now) {
      this.requested = null;
      return requested;
    }
    if (requested !== null && isProbe) return null;
    const retry = retries.findDue(now);
    const { head } = fresh;
    if (isProbe && head !== undefined && (retry === null || head.delivery.agesFrom < retry.delivery.agesFrom))
      return fresh.shift();
    if (retry !== null) retries.removeFirst();
    return retry;
  }

  /** Adds a delivery that is about to be sent, to no queue. */
  addInFlight(item: LaneItem): void {
    this.#addItem(item);
    item.state = 'in_flight';
  }

  /** Takes a queued delivery out of its queue, to send it. */
  detach(item: LaneItem): void {
    item.state = 'in_flight';
    if (!this.fresh.remove(item)) this.retries.recordDetached();
  }

  /** Keeps a payload that was loaded for sending, until the request has ended. */
  holdPayload(item: LaneItem, event: EventContent): void {
    if (item.event !== null || this.#itemsById?.get(item.delivery.id) !== item) return;
    item.event = event;
    this.#memory.bytes += event.data.length;
  }

  dropPayload(item: LaneItem): void {
    if (item.event === null) return;
    if (this.#itemsById?.get(item.delivery.id) === item) this.#memory.bytes -= item.event.data.length;
    item.event = null;
  }

  forget(item: LaneItem): void {
    if (this.requested === item) this.requested = null;
    this.dropPayload(item);
    if (this.#itemsById?.delete(item.delivery.id)) {
      this.#memory.items -= 1;
      if (this.#itemsById.size === 0) this.#itemsById = null;
    }
    this.readProgress.recordRemoved(item.delivery.id);
  }

  /** Forgets a delivery if it is queued. */
  forgetQueued(id: Uuid): void {
    const item = this.get(id);
    if (item?.state !== 'queued') return;
    if (item !== this.requested) this.detach(item);
    this.forget(item);
  }

  /** Forgets queued deliveries that were never attempted, except those in `ids`. */
  keepOnly(ids: ReadonlySet<Uuid>): void {
    for (const { delivery } of this.queued)
      if (delivery.attempts === 0 && !ids.has(delivery.id)) this.forgetQueued(delivery.id);
  }

  /** Forgets all queued deliveries. Those in flight or unsettled stay. */
  clear(): void {
    for (const item of this.#itemsById?.values() ?? [])
      if (item.state === 'queued' && item !== this.requested) this.forget(item);
    this.fresh.clear();
    this.retries.clear();
    this.readProgress.reset();
  }

  /** Drops retries beyond the horizon, to make room for earlier ones. They will be loaded again. */
  dropRetriesBeyondHorizon(): void {
    for (const item of this.retries.removeAfter(this.readProgress.retryHorizon)) {
      this.readProgress.leaveRetryInStore(item.delivery.dueAt!);
      this.forget(item);
    }
  }

  /** The clock was set by `stepMs`. Retries move, because their queue is in the order of these times. */
  onClockStepped(stepMs: number): void {
    this.#earlierRequests?.onClockStepped(stepMs);
    for (const item of this.#itemsById?.values() ?? []) {
      if (item.notBefore === 0) continue;
      const before = dueTime(item);
      item.notBefore += stepMs;
      if (!this.fifo && this.isQueuedRetry(item) && dueTime(item) !== before) this.retries.move(item);
    }
  }

  /** Gives back all memory. Requests in flight no longer belong to a lane. */
  close(): void {
    for (const item of this.#itemsById?.values() ?? []) {
      this.#memory.items -= 1;
      this.#memory.bytes -= item.event?.data.length ?? 0;
    }
    this.#itemsById = null;
  }

  #addItem(item: LaneItem): void {
    this.#itemsById ??= new TurnoverMap();
    this.#itemsById.set(item.delivery.id, item);
    this.#memory.items += 1;
    this.#memory.bytes += item.event?.data.length ?? 0;
    const { id, batchId } = item.delivery;
    // A batch is one request.
    if (item.notBefore === 0) return;
    this.#earlierRequests ??= new EarlierRequests();
    this.#earlierRequests.add(batchId ?? id, item.notBefore);
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

/** True if the delivery was replayed before this lane learned that it had ended: it must be loaded again. */
function wasReplayed(loaded: LaneItem, known: LaneItem): boolean {
  return (
    known.state === 'unsettled' &&
    loaded.delivery.trigger === 'replay' &&
    loaded.delivery.attempts > known.delivery.attempts
  );
}
