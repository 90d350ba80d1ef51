import { type Static, Type } from 'typebox';
import { deliveryStatuses } from '../../domain/delivery.ts';
import { cursorField, ListFilters, PageQuery } from '../http/pagination.ts';
import { Nullable, withMessage } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Time } from '../openapi/describe.ts';
import { UnmatchedReason } from './publish-schema.ts';

export const EventQuery = Type.Object(
  {
    ...PageQuery,
    tenant: ListFilters.tenant,
    type: ListFilters.type,
    since: ListFilters.since,
    until: ListFilters.until,
    idempotency_key: Type.Optional(
      Type.String({ maxLength: 255, description: 'The event that holds this key, until the key expires.' }),
    ),
    has: Type.Optional(
      Type.Enum([...deliveryStatuses, 'waiting', 'none'], {
        description:
          'Events with at least one delivery of this status. `waiting` is pending or retrying. `none` finds events that were sent to no endpoint.',
      }),
    ),
    where: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 600,
        pattern: '^\\s*data(\\.[^:]*)?:',
        ...withMessage(
          'must be a path that begins with "data." and a value with a colon between, such as data.order_id:ord_123',
        ),
        examples: ['data.order_id:ord_123'],
        description:
          'Events with this value in their data: a path and a value, with a colon between. A request examines at most 100,000 events, and stops after a second. It then returns what it found with a `next_cursor`: follow it to search further back, or bound the search with `since`.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type EventQuery = Static<typeof EventQuery>;
export const DeliveriesOfEvent = Type.Object(
  { ...PageQuery, status: Type.Optional(Type.Enum([...deliveryStatuses])) },
  { additionalProperties: false },
);
/** A cursor of this list names a delivery and an attempt, with a dot between. */
export const AttemptsOfEvent = Type.Object(
  { ...PageQuery, cursor: cursorField('^[A-Za-z0-9_.-]*$') },
  { additionalProperties: false },
);
export const EventId = idParams('evt', 'event');

const EventOutcomeSchema = Type.Object(
  {
    delivered: Type.Integer(),
    retrying: Type.Integer(),
    pending: Type.Integer(),
    dead: Type.Integer(),
    skipped: Type.Integer(),
    discarded: Type.Integer(),
  },
  {
    title: 'EventOutcome',
    description:
      'How many deliveries have each status. Null in lists for an event with more than 1,000 deliveries, and for the oldest events of a page that has more than 20,000 deliveries.',
  },
);
const eventFields = {
  id: Id('evt'),
  type: Type.String(),
  tenant: Type.String(),
  created_at: Time,
  outcome: Nullable(EventOutcomeSchema),
  deliveries: Type.Integer({ description: 'How many endpoints it is sent to. Disabled ones do not count.' }),
  skipped: Type.Integer({
    description: 'How many endpoints matched it but were disabled when it was accepted.',
  }),
  unmatched_reason: UnmatchedReason,
  idempotency_key: Nullable(Type.String()),
  schema_version: Nullable(
    Type.String({
      description: 'The version that its payload was written in: as published, or the latest of its type.',
    }),
  ),
  schema_errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), {
    description:
      'Why its payload did not match the catalogue when it was accepted. Empty: it did, or was not checked.',
  }),
  channels: Type.Array(Type.String()),
  endpoint_ids: Nullable(Type.Array(Id('ep'))),
  deliver_at: Nullable(Time),
  headers: Type.Record(Type.String(), Type.String()),
  duplicate_of: Nullable(
    Id(
      'evt',
      'The earlier event with the same idempotency key and content. The later one was published in a transaction, so it is stored, and it is not sent.',
    ),
  ),
  key_conflict_with: Nullable(
    Id(
      'evt',
      'The earlier event with the same idempotency key and other content. The later one was published in a transaction, and is sent without the key.',
    ),
  ),
  expunged_at: Nullable(
    Type.Unsafe<Date>({
      type: 'string',
      format: 'date-time',
      description: 'When its payload was deleted on request.',
    }),
  ),
  expunged_by: Nullable(
    Type.String({
      description:
        "Who deleted its payload: the id of a key, `user:` and the subject of a person, or `admin`. A tenant sees `operator` instead of the operator's keys and people.",
    }),
  ),
};
const exampleEvent = {
  id: exampleId('evt'),
  type: 'order.created',
  tenant: 'acme',
  created_at: EXAMPLE_TIME,
  deliveries: 2,
  outcome: { delivered: 1, retrying: 1, pending: 0, dead: 0, skipped: 0, discarded: 0 },
  skipped: 0,
  unmatched_reason: null,
  idempotency_key: 'order-1001-created',
  schema_version: null,
  schema_errors: [],
  channels: [],
  endpoint_ids: null,
  deliver_at: null,
  headers: {},
  duplicate_of: null,
  key_conflict_with: null,
  expunged_at: null,
  expunged_by: null,
};
export const EventSchema = Type.Object(eventFields, { title: 'Event', examples: [exampleEvent] });
export const EventWithData = Type.Object(
  {
    ...eventFields,
    unwritten_deliveries: Type.Integer({
      description:
        'How many of its deliveries are accepted but not in the queue yet: an event for thousands of endpoints is queued step by step. 0: all are queued.',
    }),
    data: Type.Unknown({ description: 'What was published, byte for byte.' }),
  },
  {
    title: 'EventWithData',
    examples: [{ ...exampleEvent, unwritten_deliveries: 0, data: { order_id: 1001, total: '59.90' } }],
  },
);
