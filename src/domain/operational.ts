/** Operational events: what Posthorn itself publishes (docs/operational-events.md). */
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
  deadLettersExpired: 'posthorn.dead_letters.expired',
  queueAge: 'posthorn.queue.age',
  archiveFailed: 'posthorn.archive.failed',
  versionSunset: 'posthorn.version.sunset',
} as const;
export type OperationalType = (typeof operationalTypes)[keyof typeof operationalTypes];

/** A note that a circuit opened or closed. Its id is the attempt's, so that a repeated note makes one event. */
export interface CircuitNote {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly kind: OperationalType;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Operational events about operational events would never end. */
export const isOperational = (eventType: string): boolean => eventType.startsWith(RESERVED_TYPE_PREFIX);

export interface CircuitChange {
  /** The id of the attempt that changed the circuit. */
  readonly id: Uuid;
  readonly eventType: string;
  readonly endpointId: Uuid;
  readonly before: BreakerRecord;
  readonly after: BreakerRecord;
  readonly outcome: Pick<AttemptOutcome, 'statusCode' | 'error'>;
}

/**
 * Returns the note about a change of a circuit. Null: no note is needed, because the circuit stays open after a failed
 * probe, or because an operational event opened it. A closing circuit always gets a note, but upkeep publishes it only
 * if it published the opening.
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
