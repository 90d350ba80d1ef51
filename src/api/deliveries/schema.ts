import { type Static, Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { type ErrorClass, errorClasses } from '../../domain/outcome.ts';
import { asPublishedReasons } from '../../domain/version-pins.ts';
import { ListFilters, PageQuery } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';

const { endpoint_id, ...queryOfEndpoint } = {
  ...PageQuery,
  ...ListFilters,
  status: Type.Optional(Type.Enum([...deliveryStatuses])),
};
export const DeliveryQuery = Type.Object(
  { ...queryOfEndpoint, endpoint_id },
  { additionalProperties: false },
);
/** Without `endpoint_id`, which is part of the address. */
export const EndpointDeliveryQuery = Type.Object(queryOfEndpoint, { additionalProperties: false });
export type DeliveryQuery = Static<typeof DeliveryQuery>;
export type EndpointDeliveryQuery = Static<typeof EndpointDeliveryQuery>;
export const DeliveryId = idParams('dlv', 'delivery');
export const EndpointId = idParams('ep', 'endpoint');

const waitingReasons = ['schedule', 'circuit_open', 'rate_limited', 'paused', 'ordering'] as const;
export type WaitingReason = (typeof waitingReasons)[number];

export const DeliverySchema = Type.Object(
  {
    id: Id('dlv'),
    event_id: Id('evt'),
    endpoint_id: Id('ep'),
    tenant: Type.String(),
    event_type: Type.String(),
    status: Type.Enum([...deliveryStatuses]),
    attempts: Type.Integer({ description: 'Number of attempts so far.' }),
    max_attempts: Nullable(
      Type.Integer({ description: 'Maximum number of attempts. Null: the endpoint was deleted.' }),
    ),
    next_attempt_at: Nullable(Time),
    last_status_code: Nullable(Type.Integer()),
    last_error: Nullable(Type.String({ description: 'The class of the last error.' })),
    waiting_reason: Nullable(
      Type.Enum([...waitingReasons], {
        description:
          'What it waits for. `rate_limited`: it is due, and is sent as fast as `rate_limit` of the endpoint allows. Null: it is about to be sent, or does not wait.',
      }),
    ),
    reason: Nullable(
      Type.String({
        description:
          "Why it is dead or skipped, or who discarded it. A tenant sees `operator` instead of the operator's keys and people.",
      }),
    ),
    discard: Nullable(
      Type.Object(
        { why: Nullable(Type.String()), reason: Type.String(), dead_at: Time },
        { description: 'If it was discarded: why, and the reason and time of its death.' },
      ),
    ),
    batch_id: Nullable(
      Id('bat', 'The batch that carried it last. `GET /v1/batches/{id}` shows the other deliveries of it.'),
    ),
    debounced_by: Nullable(
      Id('dlv', 'If it was skipped as `debounced`: the delivery that was sent instead.'),
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
        batch_id: null,
        debounced_by: null,
        replaying: false,
        replays: 0,
        created_at: EXAMPLE_TIME,
        delivered_at: null,
        dead_at: null,
      },
    ],
  },
);

const Milliseconds = Nullable(
  Type.Number({
    description: 'Null if the phase did not happen: the connection was already open, or no response arrived.',
  }),
);
const Headers = Type.Record(Type.String(), Type.String());

export const ConversionSchema = Type.Union(
  [
    Type.Object(
      {
        status: Type.Literal('converted'),
        from: Type.String({ description: 'The version that the event was written in.' }),
        to: Type.String({ description: 'The version that was sent.' }),
        converter: Type.String({ description: 'Hash of the converters.' }),
      },
      { title: 'Converted' },
    ),
    Type.Object(
      {
        status: Type.Literal('as_published'),
        reason: Type.Enum([...asPublishedReasons], {
          description:
            '`no_versions`: the type has none. `no_matching_version`: none fits `api_version` of the endpoint. `no_converter`: no converters lead to it.',
        }),
      },
      { title: 'AsPublished' },
    ),
  ],
  {
    title: 'Conversion',
    description:
      'How the payload for an endpoint with `api_version` was converted. Null: it was sent as it was published, in the version that the endpoint pins.',
  },
);

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
      description: 'The result. `superseded`: another worker had taken over the delivery.',
    }),
    error: Nullable(
      Type.Object({
        class: Type.Enum(Object.keys(errorClasses) as ErrorClass[]),
        message: Nullable(Type.String()),
        hint: Nullable(Type.String({ description: 'What the owner of the receiver can do about it.' })),
      }),
    ),
    conversion: Nullable(ConversionSchema),
    url: Type.String({ description: 'The address that answered, after redirects.' }),
    request_headers: Headers,
    response_headers: Nullable(Headers),
    response_body: Nullable(Type.String()),
    response_truncated: Type.Boolean(),
    trigger: Type.Enum(['auto', 'replay', 'test']),
    batch_id: Nullable(Id('bat', 'The batch that the request carried. Null: a single event.')),
    worker: Type.String({ description: 'The process that made the attempt.' }),
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
        conversion: null,
        url: 'https://example.com/hooks',
        request_headers: { 'content-type': 'application/json', 'webhook-id': exampleId('evt') },
        response_headers: { 'content-type': 'text/plain' },
        response_body: 'Service Unavailable',
        response_truncated: false,
        trigger: 'auto',
        batch_id: null,
        worker: 'posthorn-1:4242',
      },
    ],
  },
);
