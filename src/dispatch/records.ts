/** Makes the records that the store gets before and after an attempt. */
import type { Verdict } from '../domain/outcome.ts';
import type { SettledAttempt, Settlement, Start } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';
import { PROBE_MARGIN_MS } from './stored-times.ts';

export function newStart(lane: Lane, item: LaneItem, now: number): Start {
  const deadline = now + lane.endpoint.timeoutMs + PROBE_MARGIN_MS;
  return {
    deliveryId: item.delivery.id,
    attempts: item.delivery.attempts,
    // The store has already counted the start if it was recorded but not sent.
    careful: lane.isCareful && !item.isStartCounted,
    shard: lane.shard,
    at: now,
    // A requested probe leaves the circuit open, with its cooldown. Its mark in the store keeps others from starting one.
    probe:
      item.isProbe && !item.isRequested
        ? { endpointId: lane.id, breaker: lane.breaker.startProbe(deadline) }
        : null,
  };
}

/** The result of an attempt, or (`attempt` null) the end of a delivery without one. A dead letter may block its lane. */
export function newSettlement(
  lane: Lane,
  { delivery }: LaneItem,
  verdict: Verdict,
  attempt: SettledAttempt | null,
): Settlement {
  const blocksLane = verdict.kind === 'dead' && lane.isFifo && lane.endpoint.fifoOnDead === 'block';
  if (blocksLane) lane.isBlocked = true;
  return {
    deliveryId: delivery.id,
    endpointId: lane.id,
    tenant: lane.endpoint.tenant,
    attemptsBefore: delivery.attempts,
    verdict,
    blocksLane,
    fifo: lane.isFifo,
    agesFrom: delivery.agesFrom,
    attempt,
  };
}
