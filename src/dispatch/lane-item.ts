import type { WaitingDelivery } from '../domain/delivery.ts';
import type { EventContent } from '../domain/event.ts';

/** A delivery in the memory of the worker that owns its lane. */
export interface LaneItem {
  delivery: WaitingDelivery;
  /** The payload if it is in memory; otherwise it is loaded just before the request. */
  event: EventContent | null;
  /** Size of the converted payload, while an attempt uses one. */
  convertedBytes?: number;
  state: 'queued' | 'in_flight' | 'unsettled';
  /** True while this is the probe of an open circuit: the request that tests whether the receiver has recovered. */
  isProbe: boolean;
  /** True while a user has requested this attempt: it may be sent before it is due and while the circuit is open. */
  isRequested?: boolean;
  /** The deadline of its request, if it is shorter than the endpoint's own. */
  timeoutMs?: number | undefined;
  /** How many deliveries it has superseded, if its endpoint debounces. */
  debounced?: number;
  /** Do not send after this monotonic time: the decision to send is too old. */
  sendBefore?: number;
  /** Do not send before this time: an earlier owner may have a request of this delivery on the wire until then. */
  notBefore: number;
  /** How many workers crashed with this delivery on the wire. */
  crashes: number;
  /** True if this worker recorded a careful start and did not send it: the store must not count it again. */
  isStartCounted?: boolean;
}

/** The earliest time at which a requested probe may be sent. A delivery that is scheduled for later is not sent before. */
export function requestDueTime({ delivery, notBefore }: LaneItem): number {
  return Math.max(notBefore, delivery.attempts === 0 ? (delivery.dueAt ?? 0) : 0);
}

/** The earliest time at which the delivery may be sent. */
export function dueTime(item: LaneItem): number {
  return Math.max(item.delivery.dueAt ?? 0, item.notBefore);
}
