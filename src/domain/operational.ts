/** Operational events: what Posthorn itself publishes (docs/operational-events.md). */
import type { AdaptiveRecord } from './adaptive-limits.ts';
import type { BreakerRecord } from './breaker.ts';
import type { Endpoint } from './endpoint.ts';
import { RESERVED_TYPE_PREFIX } from './event.ts';
import type { Uuid } from './ids.ts';
import type { AttemptOutcome } from './outcome.ts';

export const operationalTypes = {
  endpointDisabled: 'posthorn.endpoint.disabled',
  endpointEnabled: 'posthorn.endpoint.enabled',
  endpointLimited: 'posthorn.endpoint.limited',
  endpointUnlimited: 'posthorn.endpoint.unlimited',
  circuitOpened: 'posthorn.circuit.opened',
  circuitClosed: 'posthorn.circuit.closed',
  deliveryDead: 'posthorn.delivery.dead',
  deadLettersThreshold: 'posthorn.dead_letters.threshold',
  deadLettersExpired: 'posthorn.dead_letters.expired',
  queueAge: 'posthorn.queue.age',
  archiveFailed: 'posthorn.archive.failed',
  versionSunset: 'posthorn.version.sunset',
  eventTypeSunset: 'posthorn.event_type.sunset',
} as const;
export type OperationalType = (typeof operationalTypes)[keyof typeof operationalTypes];

/**
 * A note that a circuit opened or closed, or that adaptive limits changed. Its id stays the same when the note is written
 * again, so that a repeated note makes one event.
 */
export interface EndpointNote {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  readonly kind: OperationalType;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Operational events about operational events would cause each other without end. */
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
}: CircuitChange): EndpointNote | null {
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

export interface LimitChange {
  readonly id: Uuid;
  readonly eventType: string;
  readonly endpoint: Pick<Endpoint, 'id' | 'timeoutMs' | 'maxInFlight'>;
  /** Null: the configured limits. */
  readonly before: AdaptiveRecord | null;
  readonly after: AdaptiveRecord | null;
}

/**
 * Returns the note that the limits of a slow endpoint were lowered for the first time, that its deadline was shortened, or
 * that it has its configured limits again. Null: no note is needed, because the endpoint was limited before and still is,
 * or because an operational event lowered the limits. Upkeep publishes the end only if it published the beginning.
 */
export function noteOfLimits({ id, eventType, endpoint, before, after }: LimitChange): EndpointNote | null {
  if (after === null) {
    if (before === null) return null;
    const detail = { limited_since: isoTime(before.since) };
    return { id, endpointId: endpoint.id, kind: operationalTypes.endpointUnlimited, detail };
  }
  const isNews = before === null || (before.timeoutMs === null && after.timeoutMs !== null);
  if (!isNews || isOperational(eventType)) return null;
  const detail = {
    reason: after.reason,
    limited_since: isoTime(after.since),
    in_flight_limit: after.inFlightLimit,
    max_in_flight: endpoint.maxInFlight,
    effective_timeout_ms: after.timeoutMs ?? endpoint.timeoutMs,
    timeout_ms: endpoint.timeoutMs,
  };
  return { id, endpointId: endpoint.id, kind: operationalTypes.endpointLimited, detail };
}

const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
