import { signalOf } from '../domain/decide.ts';
import type { Uuid } from '../domain/ids.ts';
import { noteOfCircuit } from '../domain/operational.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface AnsweredAttempt {
  readonly id: Uuid;
  readonly eventType: string;
  readonly outcome: AttemptOutcome;
}

/**
 * Updates the breaker and the health of a lane after an attempt. Returns the change that must be stored (null: none), and
 * whether the circuit opened or closed.
 */
export function updateHealth(
  lane: Lane,
  item: LaneItem,
  { id, eventType, outcome }: AnsweredAttempt,
  now: number,
): { readonly health: HealthChange | null; readonly isCircuitChanged: boolean } {
  const signal = signalOf(outcome);
  const wasFailing = lane.failingSince !== null;
  const before = lane.breaker.record;
  const isCircuitChanged = lane.breaker.recordSignal(signal, now, item.isProbe, item.isRequested);
  if (signal === 'success') {
    lane.failingSince = null;
    lane.recordSuccess();
  } else if (signal === 'failure') {
    lane.failingSince ??= now;
  }
  if (isCircuitChanged && lane.breaker.allowsTraffic) lane.slowStart.start();
  // A late result of a request that was in flight when the circuit opened must not overwrite the start of a probe that was
  // recorded meanwhile: the next owner would start a second one.
  if (!isCircuitChanged && !lane.breaker.allowsTraffic) return UNCHANGED;
  if (!isCircuitChanged && signal !== 'failure' && !(signal === 'success' && wasFailing)) return UNCHANGED;
  const health = { endpointId: lane.id, breaker: lane.breaker.record, failingSince: lane.failingSince };
  if (!isCircuitChanged) return { health, isCircuitChanged };
  const note = noteOfCircuit({ id, endpointId: lane.id, eventType, before, after: health.breaker, outcome });
  return { health: note === null ? health : { ...health, circuitNote: note }, isCircuitChanged };
}

const UNCHANGED = { health: null, isCircuitChanged: false } as const;
