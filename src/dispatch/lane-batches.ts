/**
 * The batches of a lane. `Lane.take` returns the first delivery of a batch, which takes the place in `max_in_flight`, the
 * socket and the turn of the rate limit. The others, its companions, are moved with the methods of this class.
 *
 * Which deliveries go together:
 *   known batch   the first one belongs to a batch that was sent before, or was split off: exactly those of the batch
 *   new batch     those queued behind the first one, with the same number of attempts, that belong to no batch
 *   alone         replays and suspected poison
 */
import type { BatchSettings } from '../domain/batch.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import type { Uuid } from '../domain/ids.ts';
import type { OpenBatch } from '../ports/batch-log.ts';
import type { LoadedDelivery } from '../ports/delivery-queue.ts';
import type { LaneItem } from './lane-item.ts';
import type { LaneQueue } from './lane-queue.ts';

/** A batch that an earlier owner may have on the wire. */
export type AdoptedBatch = Pick<OpenBatch, 'id' | 'startedAt'>;

/** When the batch that begins with `head` is due: when it is full, or has waited long enough. */
export function batchDueAt({ delivery }: LaneItem, queued: number, batch: BatchSettings): number {
  if (!canJoinNewBatch(delivery) || delivery.attempts > 0 || queued >= batch.maxEvents) return 0;
  return delivery.agesFrom + batch.maxWaitMs;
}

const canJoinNewBatch = ({ batchId, trigger }: WaitingDelivery): boolean =>
  (batchId ?? null) === null && trigger === 'auto';

/** A view of the lane's queue. It has no state of its own. */
export class LaneBatches {
  readonly #queue: LaneQueue;

  constructor(queue: LaneQueue) {
    this.#queue = queue;
  }

  /** Adopts the open batches of the earlier owner. Of two with the same delivery, the newer one counts. */
  adopt(open: readonly OpenBatch[]): void {
    if (open.length === 0) return;
    this.#queue.adopted = new Map();
    for (const { id, startedAt, deliveryIds } of open.toSorted(byId))
      for (const deliveryId of deliveryIds) this.#queue.adopted.set(deliveryId, { id, startedAt });
  }

  /** The adopted batch of a stored delivery. Null: none, or the delivery belongs to a newer batch. */
  findAdopted({ id, batchId }: Pick<LoadedDelivery, 'id' | 'batchId'>): AdoptedBatch | null {
    const adopted = this.#queue.adopted?.get(id);
    return adopted !== undefined && (batchId ?? '') <= adopted.id ? adopted : null;
  }

  /** Takes up to `max` deliveries that may go into a new batch with `leader`, in the order of the queue. */
  takeCompanions(
    leader: LaneItem,
    max: number,
    now: number,
    accepts: (item: LaneItem) => boolean,
  ): LaneItem[] {
    const { fresh, retries, fifo } = this.#queue;
    const isFresh = fifo || (leader.delivery.dueAt === null && leader.notBefore === 0);
    const companions: LaneItem[] = [];
    while (companions.length < max) {
      const item = isFresh ? fresh.head : retries.findDue(now);
      if (item == null || !this.#mayFollow(item, leader, now) || !accepts(item)) break;
      if (isFresh) fresh.shift();
      else retries.removeFirst();
      item.state = 'in_flight';
      companions.push(item);
    }
    return companions;
  }

  #mayFollow({ delivery, notBefore, crashes }: LaneItem, leader: LaneItem, now: number): boolean {
    return (
      canJoinNewBatch(delivery) &&
      delivery.attempts === leader.delivery.attempts &&
      (delivery.dueAt ?? 0) <= now &&
      notBefore <= now &&
      crashes === 0
    );
  }

  /** Takes all queued deliveries of a known batch that are in memory. */
  reserve(batchId: Uuid): LaneItem[] {
    const items = this.#queue.queued.filter(
      (item) => item.delivery.batchId === batchId && item !== this.#queue.requested,
    );
    for (const item of items) this.#queue.detach(item);
    return items;
  }

  /** Takes a delivery of a known batch, which may not be in memory. Null: it is being sent by itself. */
  claim(stored: LaneItem): LaneItem | null {
    const known = this.#queue.get(stored.delivery.id);
    if (known === undefined) {
      this.#queue.addInFlight(stored);
      return stored;
    }
    if (known.state !== 'queued' || known === this.#queue.requested) return null;
    known.delivery = stored.delivery;
    known.notBefore = Math.max(known.notBefore, stored.notBefore);
    this.#queue.detach(known);
    return known;
  }

  /** Queues companions again that were not sent, in their order. Call this before the first one is put back. */
  putBack(companions: readonly LaneItem[]): void {
    for (const item of companions.toReversed()) this.#queue.requeue(item);
    // A delivery with an earlier number may have been loaded meanwhile.
    if (this.#queue.fifo && companions.length > 0) this.#queue.fresh.sort();
  }

  /** Forgets companions whose state in the store has changed. The caller loads the lane again. */
  drop(companions: readonly LaneItem[]): void {
    for (const item of companions) this.#queue.forget(item);
  }

  markAnswered(companion: LaneItem): void {
    companion.state = 'unsettled';
    this.#queue.dropPayload(companion);
  }

  finish(companion: LaneItem, _moved?: boolean): void {
    this.#queue.forget(companion);
  }

  reschedule(companion: LaneItem, delivery: WaitingDelivery, hasRoom: boolean): void {
    this.#queue.reschedule(companion, delivery, hasRoom);
  }
}

const byId = (a: { readonly id: Uuid }, b: { readonly id: Uuid }): number => (a.id < b.id ? -1 : 1);
