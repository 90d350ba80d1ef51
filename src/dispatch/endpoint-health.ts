import { signalOf } from '../domain/decide.ts';
import type { Uuid } from '../domain/ids.ts';
import { noteOfCircuit } from '../domain/operational.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { HealthChange } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';
import { takeLimitChange, updateLimits } from './slow-endpoints.ts';

export interface AnsweredAttempt {
  readonly id: Uuid;
  readonly eventType: string;
  readonly outcome: AttemptOutcome;
}

export interface UpdatedHealth {
  /** The change that must be stored. Null: none. */
  readonly health: HealthChange | null;
  /** True if the circuit opened or closed. */
  readonly isCircuitChanged: boolean;
  /** True if the adaptive limits were lowered or raised. */
  readonly areLimitsChanged: boolean;
}

/** Updates the breaker, the adaptive limits and the health of a lane after an attempt. */
export function updateHealth(
  lane: Lane,
  item: LaneItem,
  { id, eventType, outcome }: AnsweredAttempt,
  now: number,
): UpdatedHealth {
  const signal = signalOf(outcome);
  const wasFailing = lane.failingSince !== null;
  const before = lane.breaker.record;
  const isCircuitChanged = lane.breaker.recordSignal(signal, now, item.isProbe, item.isRequested);
  const areLimitsChanged = updateLimits(lane, item, outcome, signal, now);
  if (signal === 'success') {
    lane.failingSince = null;
    lane.slowStart.recordSuccess(lane.endpoint.maxInFlight);
  } else if (signal === 'failure') {
    lane.failingSince ??= now;
  }
  if (isCircuitChanged && lane.breaker.allowsTraffic) lane.slowStart.start();
  // A late result of a request that was in flight when the circuit opened must not overwrite the start of a probe that was
  // recorded meanwhile: the next owner would start a second one.
  if (!isCircuitChanged && !lane.breaker.allowsTraffic)
    return { health: null, isCircuitChanged, areLimitsChanged };
  const isHealthChanged = isCircuitChanged || signal === 'failure' || (signal === 'success' && wasFailing);
  const limitChange = takeLimitChange(lane, eventType, now);
  if (!isHealthChanged && limitChange === null) return { health: null, isCircuitChanged, areLimitsChanged };
  const health: HealthChange = { ...healthOf(lane), ...limitChange };
  const note = isCircuitChanged
    ? noteOfCircuit({ id, endpointId: lane.id, eventType, before, after: lane.breaker.record, outcome })
    : null;
  return {
    health: note === null ? health : { ...health, circuitNote: note },
    isCircuitChanged,
    areLimitsChanged,
  };
}

/** The health of an endpoint as it is stored. */
export const healthOf = (lane: Lane): HealthChange => ({
  endpointId: lane.id,
  breaker: lane.breaker.record,
  failingSince: lane.failingSince,
  adaptive: lane.adaptive.record,
});
