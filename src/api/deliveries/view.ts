/** Deliveries and their attempts, as the API shows them. */
import { Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { eventIdOfDelivery, idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import { type ErrorClass, errorClasses } from '../../domain/outcome.ts';
import { maxAttempts } from '../../domain/retry.ts';
import type { AttemptView, DeliveryView } from '../../postgres/queries/deliveries.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, type Shown, Time } from '../openapi/describe.ts';

const waitingReasons = ['schedule', 'circuit_open', 'rate_limited', 'paused', 'ordering'] as const;
type WaitingReason = (typeof waitingReasons)[number];

export const DeliverySchema = Type.Object(
  {
    id: Id('dlv'),
    event_id: Id('evt'),
    endpoint_id: Id('ep'),
    tenant: Type.String(),
    event_type: Type.String(),
    status: Type.Enum([...deliveryStatuses]),
    attempts: Type.Integer({ description: 'How many were made.' }),
    max_attempts: Nullable(
      Type.Integer({ description: 'How many there will be at most. Null: the endpoint is gone.' }),
    ),
    next_attempt_at: Nullable(Time),
    last_status_code: Nullable(Type.Integer()),
    last_error: Nullable(Type.String({ description: 'The class of the last error.' })),
    waiting_reason: Nullable(
      Type.Enum([...waitingReasons], {
        description:
          'What it waits for. Rate limited: it is due, and its turn comes as fast as `rate_limit` of the endpoint allows. Null: it is about to be sent, or does not wait.',
      }),
    ),
    reason: Nullable(Type.String({ description: 'Why it is dead or skipped, or who discarded it.' })),
    discard: Nullable(
      Type.Object(
        { why: Nullable(Type.String()), reason: Type.String(), dead_at: Time },
        { description: 'Of a discarded one: why, and what it had died of.' },
      ),
    ),
    replaying: Type.Boolean(),
    replays: Type.Integer(),
    created_at: Time,
    delivered_at: Nullable(Time),
    dead_at: Nullable(Time),
  },
  {
    title: 'Delivery',
    examples: [
      {
        id: exampleId('dlv'),
        event_id: exampleId('evt'),
        endpoint_id: exampleId('ep'),
        tenant: 'acme',
        event_type: 'order.created',
        status: 'retrying',
        attempts: 2,
        max_attempts: 7,
        next_attempt_at: EXAMPLE_TIME,
        last_status_code: 503,
        last_error: 'http_5xx',
        waiting_reason: 'schedule',
        reason: null,
        discard: null,
        replaying: false,
        replays: 0,
        created_at: EXAMPLE_TIME,
        delivered_at: null,
        dead_at: null,
      },
    ],
  },
);

const Milliseconds = Nullable(Type.Number({ description: 'Null where the connection was open already.' }));
const Headers = Type.Record(Type.String(), Type.String());

export const AttemptSchema = Type.Object(
  {
    delivery_id: Id('dlv'),
    number: Type.Integer(),
    started_at: Time,
    duration_ms: Type.Number(),
    timing: Type.Object({
      dns_ms: Milliseconds,
      connect_ms: Milliseconds,
      tls_ms: Milliseconds,
      first_byte_ms: Milliseconds,
    }),
    status_code: Nullable(Type.Integer()),
    outcome: Type.Enum(['delivered', 'retry', 'dead', 'superseded'], {
      description: 'What came of it. Superseded: another worker had taken the delivery over.',
    }),
    error: Nullable(
      Type.Object({
        class: Type.Enum(Object.keys(errorClasses) as ErrorClass[]),
        message: Nullable(Type.String()),
        hint: Nullable(Type.String({ description: 'What the owner of the receiver can do about it.' })),
      }),
    ),
    url: Type.String({ description: 'The address that answered, after redirects.' }),
    request_headers: Headers,
    response_headers: Nullable(Headers),
    response_body: Nullable(Type.String()),
    response_truncated: Type.Boolean(),
    trigger: Type.Enum(['auto', 'replay', 'test']),
    worker: Type.String({ description: 'The process that made it.' }),
  },
  {
    title: 'Attempt',
    examples: [
      {
        delivery_id: exampleId('dlv'),
        number: 1,
        started_at: EXAMPLE_TIME,
        duration_ms: 12,
        timing: { dns_ms: 1, connect_ms: 3, tls_ms: 5, first_byte_ms: 11 },
        status_code: 503,
        outcome: 'retry',
        error: {
          class: 'http_5xx',
          message: 'The receiver answered 503.',
          hint: errorClasses.http_5xx,
        },
        url: 'https://example.com/hooks',
        request_headers: { 'content-type': 'application/json', 'webhook-id': exampleId('evt') },
        response_headers: { 'content-type': 'text/plain' },
        response_body: 'Service Unavailable',
        response_truncated: false,
        trigger: 'auto',
        worker: 'posthorn-1:4242',
      },
    ],
  },
);

export function showDelivery(
  view: DeliveryView,
  endpoint: Endpoint | undefined,
): Shown<typeof DeliverySchema> {
  const waits = view.status === 'pending' || view.status === 'retrying';
  return {
    id: publicId(idPrefixes.delivery, view.id),
    event_id: publicId(idPrefixes.event, eventIdOfDelivery(view.id)),
    endpoint_id: publicId(idPrefixes.endpoint, view.endpoint_id),
    tenant: view.tenant,
    event_type: view.event_type,
    status: view.status,
    attempts: view.attempts,
    max_attempts: endpoint === undefined ? null : maxAttempts(endpoint.retry),
    next_attempt_at: waits ? view.due_at : null,
    last_status_code: view.last_status_code,
    last_error: view.last_error_class,
    waiting_reason: waits ? waitingReason(view, endpoint) : null,
    reason: view.reason,
    discard: view.discard && {
      why: view.discard.why,
      reason: view.discard.reason,
      dead_at: new Date(view.discard.dead_at),
    },
    replaying: view.replaying,
    replays: view.replays,
    created_at: new Date(timeOfId(view.id)),
    delivered_at: view.status === 'delivered' ? view.finished_at : null,
    dead_at: view.status === 'dead' ? view.finished_at : null,
  };
}

function waitingReason(view: DeliveryView, endpoint: Endpoint | undefined): WaitingReason | null {
  if (endpoint?.paused) return 'paused';
  if (view.waits_for !== null) return view.waits_for;
  return view.due_at === null ? null : 'schedule';
}

export function showAttempt(attempt: AttemptView): Shown<typeof AttemptSchema> {
  const errorClass = attempt.error_class as ErrorClass | null;
  return {
    delivery_id: publicId(idPrefixes.delivery, attempt.delivery_id),
    number: attempt.number,
    started_at: attempt.started_at,
    duration_ms: attempt.duration_ms,
    timing: {
      dns_ms: attempt.dns_ms,
      connect_ms: attempt.connect_ms,
      tls_ms: attempt.tls_ms,
      first_byte_ms: attempt.first_byte_ms,
    },
    status_code: attempt.status_code,
    outcome: attempt.outcome,
    error: errorClass && {
      class: errorClass,
      message: attempt.error_message,
      hint: errorClasses[errorClass] ?? null,
    },
    url: attempt.url,
    request_headers: attempt.request_headers,
    response_headers:
      attempt.response_headers === null
        ? null
        : (JSON.parse(attempt.response_headers) as Record<string, string>),
    response_body: attempt.response_body === null ? null : attempt.response_body.toString('utf8'),
    response_truncated: attempt.response_truncated,
    trigger: attempt.trigger,
    worker: attempt.worker,
  };
}
