import type { WaitingDelivery } from '../domain/delivery.ts';
import type { EventContent } from '../domain/event.ts';

/** A delivery in the memory of the worker that owns its lane. */
export interface LaneItem {
  delivery: WaitingDelivery;
  /** The payload, if it is in memory anyway; otherwise it is read just before it is sent. */
  event: EventContent | null;
  state: 'queued' | 'in_flight' | 'unsettled';
  /** It is the one request that finds out whether the receiver has recovered. */
  probe: boolean;
  /** When two at once may never be: not before this time, because an earlier owner may have it on the wire. */
  notBefore: number;
  /** Starts in careful mode that were never heard of again, as the database has them. */
  carefulStarts: number;
  /** One of them is of this worker, which put it back without sending it. */
  startCounted?: boolean;
}

/** Not before it is due, and not before an earlier owner's request of it has met its deadline. */
export function dueTime(item: LaneItem): number {
  return Math.max(item.delivery.dueAt ?? 0, item.notBefore);
}
