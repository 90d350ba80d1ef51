/** What Posthorn itself has to tell (docs/operational-events.md). */
import type { BreakerRecord } from './breaker.ts';
import { RESERVED_TYPE_PREFIX } from './event.ts';
import type { Uuid } from './ids.ts';
import type { AttemptOutcome } from './outcome.ts';

export const operationalTypes = {
  endpointDisabled: 'posthorn.endpoint.disabled',
  endpointEnabled: 'posthorn.endpoint.enabled',
  circuitOpened: 'posthorn.circuit.opened',
  circuitClosed: 'posthorn.circuit.closed',
  deliveryDead: 'posthorn.delivery.dead',
  deadLettersThreshold: 'posthorn.dead_letters.threshold',
  queueAge: 'posthorn.queue.age',
} as const;
export type OperationalType = (typeof operationalTypes)[keyof typeof operationalTypes];

/** A circuit that opened or closed, to be told of. Under the id of the attempt that did it: noted twice, it is told once. */
export interface CircuitNote {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly kind: OperationalType;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Events about what happens to operational events would lead to events about those. */
export const isOperational = (eventType: string): boolean => eventType.startsWith(RESERVED_TYPE_PREFIX);

export interface CircuitChange {
  /** Of the attempt that made the difference, and of its event. */
  readonly id: Uuid;
  readonly eventType: string;
  readonly endpointId: Uuid;
  readonly before: BreakerRecord;
  readonly after: BreakerRecord;
  readonly outcome: Pick<AttemptOutcome, 'statusCode' | 'error'>;
}

/**
 * What is to be told of a change of a circuit, if anything. That it stays open after a failed probe is not news. And if
 * it opened because operational events cannot be delivered, telling so would be one more of them; that it closed is
 * noted in any case, and told if it was told that it had opened.
 */
export function noteOfCircuit({
  id,
  eventType,
  endpointId,
  before,
  after,
  outcome,
}: CircuitChange): CircuitNote | null {
  if (after.circuit === 'closed') {
    const detail = { opened_at: isoTime(before.openedAt) };
    return { id, endpointId, kind: operationalTypes.circuitClosed, detail };
  }
  if (before.circuit !== 'closed' || isOperational(eventType)) return null;
  const detail = {
    opened_at: isoTime(after.openedAt),
    next_probe_at: isoTime(after.nextProbeAt),
    consecutive_failures: after.consecutiveFailures,
    status_code: outcome.statusCode,
    error_class: outcome.error?.class ?? null,
  };
  return { id, endpointId, kind: operationalTypes.circuitOpened, detail };
}

const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
