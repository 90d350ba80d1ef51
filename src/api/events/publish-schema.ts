/**
 * What a producer sends and gets. The requests are here for the document only: `readEvent` reads the bytes itself, so
 * that `data` is carried on as it came.
 */
import { Type } from 'typebox';
import { MAX_EVENT_TYPE_LENGTH } from '../../domain/event.ts';
import type { ProblemCode } from '../../domain/problem.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, ProblemOf, Time } from '../openapi/describe.ts';

export const MAX_BATCH_EVENTS = 1000;

const IdempotencyKey = (description: string) =>
  Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255, description })));

export const NewEvent = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      maxLength: MAX_EVENT_TYPE_LENGTH,
      pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
      description: 'Segments of letters, digits, `_` and `-`, separated by dots. `posthorn.` is reserved.',
    }),
    data: Type.Unknown({ description: 'Any JSON value. It reaches the receivers byte for byte.' }),
    tenant: Type.Optional(
      Nullable(
        Type.String({
          pattern: '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$',
          description: "Whose event it is. A tenant's key implies it; otherwise `default`.",
        }),
      ),
    ),
    idempotency_key: IdempotencyKey('Of events with the same key, one is accepted.'),
    schema_version: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 64 }))),
    channels: Type.Optional(
      Nullable(
        Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
          maxItems: 50,
          description: 'Only for endpoints of one of these channels, and those without any.',
        }),
      ),
    ),
    endpoint_ids: Type.Optional(
      Nullable(Type.Array(Id('ep'), { maxItems: 1000, description: 'Only for these endpoints.' })),
    ),
    deliver_at: Type.Optional(
      Nullable(
        Type.String({
          format: 'date-time',
          description:
            'Not before this RFC 3339 time. FIFO endpoints send in the order of acceptance instead: one that subscribes gets the event at its turn, and one that is named in `endpoint_ids` makes the event be refused.',
        }),
      ),
    ),
    headers: Type.Optional(
      Nullable(
        Type.Record(Type.String(), Type.String({ maxLength: 4096 }), {
          maxProperties: 50,
          description: 'Sent along with every delivery.',
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
      description: 'Instead of `idempotency_key` in the body. For a batch each event gets a key made of it.',
    }),
  ),
  traceparent: Type.Optional(
    Type.String({
      maxLength: 55,
      description:
        'W3C trace context, kept with the event and sent to the receivers; `tracestate` as well. `headers.traceparent` of an event outranks it.',
    }),
  ),
});

const accepted = {
  id: exampleId('evt'),
  type: 'order.created',
  tenant: 'acme',
  created_at: EXAMPLE_TIME,
  deliveries: 2,
  duplicate: false,
};

export const AcceptedEvent = Type.Object(
  {
    id: Id('evt'),
    type: Type.String(),
    tenant: Type.String(),
    created_at: Time,
    deliveries: Type.Integer({ description: 'To how many endpoints it goes.' }),
    duplicate: Type.Boolean({ description: 'It had been accepted before, under the same key.' }),
  },
  { title: 'AcceptedEvent', examples: [accepted] },
);

/** Why one event of a batch is not accepted. */
const refusals: readonly ProblemCode[] = [
  'forbidden',
  'idempotency_conflict',
  'too_large',
  'invalid',
  'rate_limited',
  'overloaded',
  'unavailable',
];

export const AcceptedBatch = Type.Object(
  {
    results: Type.Array(
      Type.Union([AcceptedEvent, Type.Object({ error: ProblemOf(refusals) }, { title: 'RefusedEvent' })]),
    ),
  },
  { title: 'AcceptedBatch', examples: [{ results: [accepted] }] },
);
