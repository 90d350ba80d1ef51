/** The messages of the live tail: accepted events, settled attempts, changed endpoints. */
import type { Endpoint } from '../../domain/endpoint.ts';
import { eventIdOfDelivery, idPrefixes, parsePublicId, publicId, type Uuid } from '../../domain/ids.ts';
import type { AttemptOutcome, Trigger, Verdict } from '../../domain/outcome.ts';

export interface TailMessage {
  readonly event: 'event.accepted' | 'attempt' | 'endpoint';
  readonly data: Readonly<Record<string, unknown>>;
}

/** The fields that filters compare. */
export interface Subject {
  readonly tenant: string;
  readonly endpointId: Uuid | null;
  readonly type: string | null;
  readonly outcome: Verdict['kind'] | null;
}

/** Null matches everything. */
export interface TailFilter {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  readonly type: string | null;
  readonly outcome: Verdict['kind'] | null;
}

export function matches(filter: TailFilter, subject: Subject): boolean {
  return (
    (filter.tenant === null || filter.tenant === subject.tenant) &&
    (filter.endpointId === null || filter.endpointId === subject.endpointId) &&
    (filter.type === null || filter.type === subject.type) &&
    (filter.outcome === null || filter.outcome === subject.outcome)
  );
}

const STATUS = { delivered: 'delivered', retry: 'retrying', dead: 'dead' } as const;

export interface AcceptedEvent {
  readonly id: Uuid;
  readonly type: string;
  readonly tenant: string;
  readonly createdAt: number;
  readonly deliveries: number;
}

export function acceptedMessage({ id, type, tenant, createdAt, deliveries }: AcceptedEvent): TailMessage {
  const data = {
    id: publicId(idPrefixes.event, id),
    type,
    tenant,
    created_at: new Date(createdAt).toISOString(),
    deliveries,
  };
  return { event: 'event.accepted', data };
}

export interface SettledDelivery {
  readonly deliveryId: Uuid;
  readonly endpointId: Uuid;
  readonly tenant: string;
  readonly attemptsBefore: number;
  readonly verdict: Verdict;
  readonly attempt: {
    readonly outcome: AttemptOutcome;
    readonly trigger: Trigger;
    readonly eventType: string;
  } | null;
}

export function attemptMessage(
  settled: SettledDelivery,
  { outcome, trigger, eventType }: NonNullable<SettledDelivery['attempt']>,
): TailMessage {
  const data = {
    delivery_id: publicId(idPrefixes.delivery, settled.deliveryId),
    event_id: publicId(idPrefixes.event, eventIdOfDelivery(settled.deliveryId)),
    endpoint_id: publicId(idPrefixes.endpoint, settled.endpointId),
    tenant: settled.tenant,
    event_type: eventType,
    number: settled.attemptsBefore + 1,
    outcome: settled.verdict.kind,
    status_code: outcome.statusCode,
    duration_ms: Math.round(outcome.durationMs),
    error_class: outcome.error?.class ?? null,
    status: STATUS[settled.verdict.kind],
    trigger,
    at: new Date(outcome.startedAt + outcome.durationMs).toISOString(),
  };
  return { event: 'attempt', data };
}

/** `circuit`: its new state, or null if something else changed. */
export function endpointMessage(endpoint: Endpoint, circuit: string | null, now: number): TailMessage {
  const { id, tenant, enabled, disabledReason, paused, deleted } = endpoint;
  const data = {
    endpoint_id: publicId(idPrefixes.endpoint, id),
    tenant,
    change: circuit === null ? 'settings' : 'circuit',
    circuit,
    enabled,
    disabled_reason: disabledReason,
    paused,
    deleted,
    at: new Date(now).toISOString(),
  };
  return { event: 'endpoint', data };
}

/** The subject of a message from another process. */
export function subjectOf({ event, data }: TailMessage): Subject {
  const endpointId =
    event === 'event.accepted' ? null : parsePublicId(idPrefixes.endpoint, String(data.endpoint_id));
  const type = event === 'attempt' ? data.event_type : event === 'event.accepted' ? data.type : null;
  const outcome = event === 'attempt' ? data.outcome : null;
  return { tenant: String(data.tenant), endpointId, type, outcome } as Subject;
}

/** Formats a server-sent event. JSON text contains no line breaks. */
export const toServerSentEvent = (event: string, data: object): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
