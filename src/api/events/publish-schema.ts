/**
 * What a producer sends and receives. The schemas of requests are only for the document: `readEvent` reads the bytes
 * itself, so that `data` stays byte for byte the same.
 */
import { Type } from 'typebox';
import { MAX_EVENT_TYPE_LENGTH, PUBLISHED_TYPE, TENANT_ID, unmatchedReasons } from '../../domain/event.ts';
import { HEADER_NAME, HEADER_VALUE } from '../../domain/header-names.ts';
import type { ProblemCode } from '../../domain/problem.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, ProblemOf, Time } from '../openapi/describe.ts';

export const MAX_BATCH_EVENTS = 1000;

const IdempotencyKey = (description: string) =>
  Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255, pattern: '^[ -~]*$', description })));

export const NewEvent = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      maxLength: MAX_EVENT_TYPE_LENGTH,
      pattern: PUBLISHED_TYPE.source,
      description: 'Segments of letters, digits, `_` and `-`, separated by dots. `posthorn.` is reserved.',
    }),
    data: Type.Unknown({ description: 'Any JSON value. It reaches the receivers byte for byte.' }),
    tenant: Type.Optional(
      Nullable(
        Type.String({
          pattern: TENANT_ID.source,
          description: 'The tenant of the event. Default: the tenant of the key, otherwise `default`.',
        }),
      ),
    ),
    idempotency_key: IdempotencyKey('Of several events with the same key, only one is accepted.'),
    schema_version: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 64 }))),
    channels: Type.Optional(
      Nullable(
        Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
          maxItems: 50,
          description:
            'The event goes only to endpoints with one of these channels, and to those without channels.',
        }),
      ),
    ),
    endpoint_ids: Type.Optional(
      Nullable(
        Type.Array(Id('ep'), { maxItems: 1000, description: 'The event goes only to these endpoints.' }),
      ),
    ),
    deliver_at: Type.Optional(
      Nullable(
        Type.String({
          format: 'date-time',
          description:
            'Posthorn does not send the event before this RFC 3339 time. FIFO endpoints ignore it, because they send in the order of acceptance; an event that names one in `endpoint_ids` is refused.',
        }),
      ),
    ),
    headers: Type.Optional(
      Nullable(
        Type.Record(Type.String(), Type.String({ maxLength: 4096, pattern: HEADER_VALUE.source }), {
          propertyNames: { pattern: HEADER_NAME.source },
          maxProperties: 50,
          description: 'Posthorn sends these headers with every delivery of the event.',
        }),
      ),
    ),
  },
  {
    title: 'NewEvent',
    additionalProperties: false,
    examples: [
      {
        type: 'order.created',
        tenant: 'acme',
        data: { order_id: 1001, total: '59.90' },
        idempotency_key: 'order-1001-created',
      },
    ],
  },
);

export const NewBatch = Type.Object(
  { events: Type.Array(NewEvent, { minItems: 1, maxItems: MAX_BATCH_EVENTS }) },
  {
    title: 'NewBatch',
    additionalProperties: false,
    examples: [
      {
        events: [
          { type: 'order.created', tenant: 'acme', data: { order_id: 1002 } },
          { type: 'order.paid', tenant: 'acme', data: { order_id: 1002 } },
        ],
      },
    ],
  },
);

export const PublishHeaders = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Has the same meaning as `idempotency_key` in the body. In a batch, each event gets a key derived from it.',
    }),
  ),
  traceparent: Type.Optional(
    Type.String({
      description:
        'W3C trace context: version, trace id, parent id and flags, 55 characters. Stored with the event and sent to the receivers; so is `tracestate`. One of another form is ignored, as the specification says. `headers.traceparent` of an event takes precedence.',
    }),
  ),
});

export const UnmatchedReason = Nullable(
  Type.Enum([...unmatchedReasons], {
    description:
      'Why it is sent to no endpoint. `no_endpoint`: none subscribes to its type. `filtered`: channels or filters leave it out. `disabled`: all endpoints that match are disabled, and their deliveries are `skipped`. Otherwise null.',
  }),
);

const accepted = {
  id: exampleId('evt'),
  type: 'order.created',
  tenant: 'acme',
  created_at: EXAMPLE_TIME,
  deliveries: 2,
  unmatched_reason: null,
  duplicate: false,
};

export const AcceptedEvent = Type.Object(
  {
    id: Id('evt'),
    type: Type.String(),
    tenant: Type.String(),
    created_at: Time,
    deliveries: Type.Integer({
      description: 'How many endpoints it is sent to. Disabled ones do not count.',
    }),
    unmatched_reason: UnmatchedReason,
    duplicate: Type.Boolean({
      description:
        'True: an event with the same idempotency key was accepted before, and this is that event.',
    }),
  },
  { title: 'AcceptedEvent', examples: [accepted] },
);

/** The problems of a single event in a batch. */
const eventProblems: readonly ProblemCode[] = [
  'forbidden',
  'conflict',
  'idempotency_conflict',
  'too_large',
  'invalid',
  'payload_invalid',
  'rate_limited',
  'overloaded',
  'unavailable',
];

export const AcceptedBatch = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        AcceptedEvent,
        Type.Object({ error: ProblemOf(eventProblems) }, { title: 'RefusedEvent' }),
      ]),
    ),
  },
  { title: 'AcceptedBatch', examples: [{ results: [accepted] }] },
);
