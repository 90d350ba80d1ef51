/**
 * Chooses the deliveries of the next batch of a lane, and loads their payloads (docs/adr/0024-batches.md). What it returns
 * is taken from the lane: the caller sends it, puts it back or drops it.
 */
import { BATCH_FRAME_BYTES, type BatchSettings, maxEnvelopeBytes } from '../domain/batch.ts';
import type { Clock } from '../domain/clock.ts';
import { expiresAt } from '../domain/decide.ts';
import type { EventContent } from '../domain/event.ts';
import { eventIdOfDelivery, newId, type Uuid } from '../domain/ids.ts';
import type { BatchLog, StoredBatch } from '../ports/batch-log.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { Payloads } from './payloads.ts';
import { toItem } from './refill.ts';

export interface BatchComposerOptions {
  readonly clock: Clock;
  readonly queue: Pick<BatchLog, 'loadBatch'>;
  readonly payloads: Pick<Payloads, 'load' | 'isExpunged'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** A batch that is about to be sent. */
export interface Batch {
  readonly id: Uuid;
  readonly lane: Lane;
  /** The delivery that `Lane.take` returned. The others are its companions. */
  readonly leader: LaneItem;
  /** In the order of the body, the leader included. */
  readonly items: readonly LaneItem[];
  /** The payloads of `items`. */
  readonly events: readonly EventContent[];
}

export type Composed =
  | Batch
  /** Try again at `until`, or after a pause if it is 0. The companions are back in the lane. */
  | { readonly until: number }
  /** The event of the leader no longer exists. The companions are back in the lane. */
  | 'gone';

/** A batch without payloads. */
interface Draft {
  readonly id: Uuid;
  readonly items: readonly LaneItem[];
  /** True if the deliveries were sent under this id before, so that none may be left out. */
  readonly isKnown: boolean;
}

/** Payloads that are loaded at the same time. Their total is checked before more are loaded. */
const PAYLOADS_AT_ONCE = 100;

export class BatchComposer {
  readonly #options: BatchComposerOptions;

  constructor(options: BatchComposerOptions) {
    this.#options = options;
  }

  /**
   * Composes the batch of `leader`. Calls `onReplaced` with the id of a batch whose deliveries have changed: the rest get
   * a new id, and the old one is never sent again.
   */
  async compose(lane: Lane, leader: LaneItem, onReplaced: (id: Uuid) => void): Promise<Composed> {
    const draft = await this.#draft(lane, leader, onReplaced);
    if ('until' in draft) return draft;
    const until = Math.max(...draft.items.map(({ notBefore }) => notBefore));
    if (until > this.#options.clock.now()) {
      lane.batches.putBack(without(draft.items, leader));
      return { until };
    }
    return this.#withPayloads(lane, leader, draft, onReplaced);
  }

  // --- which deliveries -----------------------------------------------------------------------------------

  async #draft(
    lane: Lane,
    leader: LaneItem,
    onReplaced: (id: Uuid) => void,
  ): Promise<Draft | { readonly until: number }> {
    const { clock, onProblem } = this.#options;
    const { batchId = null, trigger } = leader.delivery;
    const isAlone = trigger !== 'auto' || lane.isCareful || leader.crashes > 0;
    if (batchId === null) {
      const companions = isAlone || leader.isRequested ? [] : this.#takeCompanions(lane, leader);
      return { id: newId(clock.now()), items: [leader, ...companions], isKnown: false };
    }
    // Reserve them before the read, so that none of them becomes a leader meanwhile.
    const reserved = isAlone ? [] : lane.batches.reserve(batchId);
    let stored: StoredBatch;
    try {
      stored = await this.#options.queue.loadBatch(batchId);
    } catch (error) {
      onProblem('read a batch', error);
      lane.batches.putBack(reserved);
      return { until: 0 };
    }
    lane.batches.putBack(reserved);
    if (lane.isClosed) return { until: 0 };
    const companions = isAlone ? [] : this.#claimMembers(lane, leader, batchId, stored);
    const items = lane.isFifo ? [leader, ...companions].sort(bySeq) : [leader, ...companions];
    if (stored.composition === null) return { id: batchId, items, isKnown: false };
    if (isSameSet(stored.composition, items))
      return { id: batchId, items: inOrder(items, stored.composition), isKnown: true };
    onReplaced(batchId);
    return { id: newId(clock.now()), items, isKnown: false };
  }

  #takeCompanions(lane: Lane, leader: LaneItem): LaneItem[] {
    const now = this.#options.clock.now();
    const { maxEvents } = lane.endpoint.batch!;
    return lane.batches.takeCompanions(leader, maxEvents - 1, now, (item) =>
      this.#isSendable(lane, item, now),
    );
  }

  /** The other deliveries of a known batch, as far as they can still be sent with it. */
  #claimMembers(lane: Lane, leader: LaneItem, batchId: Uuid, { waiting }: StoredBatch): LaneItem[] {
    const now = this.#options.clock.now();
    return waiting.flatMap((row) => {
      const isLeader = row.id === leader.delivery.id;
      if (isLeader || row.trigger !== 'auto' || (row.batchId ?? '') > batchId) return [];
      const item = toItem({ ...row, batchId }, lane, this.#options.clock);
      return this.#isSendable(lane, item, now) ? (lane.batches.claim(item) ?? []) : [];
    });
  }

  /** False if the delivery has expired or its payload was deleted: it is ended when it is at the head itself. */
  #isSendable(lane: Lane, { delivery }: LaneItem, now: number): boolean {
    return (
      (this.#options.clock.isSteady === false || now <= expiresAt(delivery, lane.endpoint.retry)) &&
      !this.#options.payloads.isExpunged(eventIdOfDelivery(delivery.id))
    );
  }

  // --- their payloads -------------------------------------------------------------------------------------

  async #withPayloads(
    lane: Lane,
    leader: LaneItem,
    draft: Draft,
    onReplaced: (id: Uuid) => void,
  ): Promise<Composed> {
    const kept: LaneItem[] = [];
    const events: EventContent[] = [];
    const leftOut: LaneItem[] = [];
    let bytes = BATCH_FRAME_BYTES;
    for (let start = 0; start < draft.items.length; start += PAYLOADS_AT_ONCE) {
      const chunk = draft.items.slice(start, start + PAYLOADS_AT_ONCE);
      const loaded = this.#heldPayloads(chunk) ?? (await this.#loadPayloads(lane, chunk));
      for (const [index, event] of loaded.entries()) {
        const item = chunk[index]!;
        if (event === undefined || (event === null && item === leader)) {
          lane.batches.putBack(without(draft.items, leader));
          return event === null ? 'gone' : { until: 0 };
        }
        if (event !== null) bytes += maxEnvelopeBytes(lane.endpoint, event);
        const isLeftOut =
          event === null ||
          (!draft.isKnown && (leftOut.length > 0 || isFull(event, events, bytes, lane.endpoint.batch)));
        (isLeftOut ? leftOut : kept).push(item);
        if (!isLeftOut) events.push(event);
      }
      if (leftOut.length > 0 && !draft.isKnown) {
        leftOut.push(...draft.items.slice(start + PAYLOADS_AT_ONCE));
        break;
      }
    }
    lane.batches.putBack(leftOut);
    const isChanged = draft.isKnown && leftOut.length > 0;
    if (isChanged) onReplaced(draft.id);
    const id = isChanged ? newId(this.#options.clock.now()) : draft.id;
    // Retries come out of the queue in any order. Receivers get the events of a batch oldest first.
    const order = [...kept.keys()];
    if (!draft.isKnown && !lane.isFifo) order.sort((a, b) => (events[a]!.id < events[b]!.id ? -1 : 1));
    return { id, lane, leader, items: order.map((n) => kept[n]!), events: order.map((n) => events[n]!) };
  }

  /** The payloads, if all of them are in memory and none was deleted. Otherwise null. */
  #heldPayloads(items: readonly LaneItem[]): EventContent[] | null {
    const events: EventContent[] = [];
    for (const { event } of items) {
      if (event === null || this.#options.payloads.isExpunged(event.id)) return null;
      events.push(event);
    }
    return events;
  }

  #loadPayloads(lane: Lane, items: readonly LaneItem[]): Promise<(EventContent | null | undefined)[]> {
    return Promise.all(items.map((item) => this.#loadPayload(lane, item)));
  }

  #loadPayload(lane: Lane, item: LaneItem): Promise<EventContent | null | undefined> {
    const { event } = item;
    const eventId = eventIdOfDelivery(item.delivery.id);
    if (this.#options.payloads.isExpunged(eventId)) return Promise.resolve(null);
    if (event !== null) return Promise.resolve(event);
    return new Promise((resolve) =>
      this.#options.payloads.load(eventId, (loaded) => {
        if (loaded) lane.holdPayload(item, loaded);
        resolve(loaded);
      }),
    );
  }
}

/** True if the event does not fit behind the others. A test event goes alone, so that its receiver can tell it apart. */
function isFull(
  event: EventContent,
  before: readonly EventContent[],
  bytes: number,
  settings: BatchSettings | null,
): boolean {
  if (before.length === 0) return false;
  return event.isTest === true || before[0]!.isTest === true || bytes > (settings?.maxBytes ?? 0);
}

function isSameSet(composition: readonly Uuid[] | null, items: readonly LaneItem[]): boolean {
  if (composition === null || composition.length !== items.length) return false;
  const ids = new Set(items.map(({ delivery }) => delivery.id));
  return composition.every((id) => ids.has(id));
}

const bySeq = (a: LaneItem, b: LaneItem): number => a.delivery.seq - b.delivery.seq;

const without = (items: readonly LaneItem[], leader: LaneItem): LaneItem[] =>
  items.filter((item) => item !== leader);

function inOrder(items: readonly LaneItem[], order: readonly Uuid[]): readonly LaneItem[] {
  const positions = new Map(order.map((id, position) => [id, position]));
  const positionOf = ({ delivery }: LaneItem): number => positions.get(delivery.id) ?? 0;
  return items.toSorted((a, b) => positionOf(a) - positionOf(b));
}
