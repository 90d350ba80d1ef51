/** "Where is event X?": events, their payloads, deliveries and attempts. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { type DeliveryStatus, deliveryStatuses } from '../../domain/delivery.ts';
import { DEFAULT_TENANT } from '../../domain/event.ts';
import {
  deliveryRangeOfEvent,
  eventIdOfDelivery,
  firstIdAt,
  idPrefixes,
  parsePublicId,
  publicId,
  timeOfId,
  type Uuid,
} from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import { type DeliveryView, listAttempts } from '../../postgres/queries/deliveries.ts';
import {
  type EventView,
  findEvent,
  findEventsByKey,
  listEvents,
  loadEventViews,
} from '../../postgres/queries/events.ts';
import { listDeliveries } from '../../postgres/queries/list-deliveries.ts';
import type { IdRange } from '../../postgres/queries/list-query.ts';
import { idBounds } from '../deliveries/routes.ts';
import { AttemptSchema, DeliverySchema, showAttempt, showDelivery } from '../deliveries/view.ts';
import type { ApiContext } from '../dependencies.ts';
import { type Caller, tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, Page, type Shown, Time } from '../openapi/describe.ts';

const EventQuery = Type.Object(
  {
    ...PageQuery,
    tenant: ListFilters.tenant,
    type: ListFilters.type,
    since: ListFilters.since,
    until: ListFilters.until,
    idempotency_key: Type.Optional(
      Type.String({ maxLength: 255, description: 'The event that holds this key, while it is remembered.' }),
    ),
    has: Type.Optional(
      Type.Enum(['dead', 'waiting'], { description: 'With at least one delivery that is dead, or waits.' }),
    ),
  },
  { additionalProperties: false },
);
type EventQuery = Static<typeof EventQuery>;
const DeliveriesOfEvent = Type.Object(
  { ...PageQuery, status: Type.Optional(Type.Enum([...deliveryStatuses])) },
  { additionalProperties: false },
);
const AttemptsOfEvent = Type.Object(PageQuery, { additionalProperties: false });
const EventId = idParams('evt', 'event');
type ById = { Params: { id: string } };

const eventFields = {
  id: Id('evt'),
  type: Type.String(),
  tenant: Type.String(),
  created_at: Time,
  deliveries: Type.Integer({ description: 'To how many endpoints it goes.' }),
  idempotency_key: Nullable(Type.String()),
  schema_version: Nullable(Type.String()),
  channels: Type.Array(Type.String()),
  endpoint_ids: Nullable(Type.Array(Id('ep'))),
  deliver_at: Nullable(Time),
  headers: Type.Record(Type.String(), Type.String()),
  duplicate_of: Nullable(
    Id('evt', 'Published in a transaction under a key that had become this event’s: nothing was sent again.'),
  ),
  key_conflict_with: Nullable(
    Id('evt', 'Published in a transaction under a key that had become this event’s, which is another one.'),
  ),
};
const exampleEvent = {
  id: exampleId('evt'),
  type: 'order.created',
  tenant: 'acme',
  created_at: EXAMPLE_TIME,
  deliveries: 2,
  idempotency_key: 'order-1001-created',
  schema_version: null,
  channels: [],
  endpoint_ids: null,
  deliver_at: null,
  headers: {},
  duplicate_of: null,
  key_conflict_with: null,
};
const EventSchema = Type.Object(eventFields, { title: 'Event', examples: [exampleEvent] });
const EventWithData = Type.Object(
  { ...eventFields, data: Type.Unknown({ description: 'What was published, byte for byte.' }) },
  { title: 'EventWithData', examples: [{ ...exampleEvent, data: { order_id: 1001, total: '59.90' } }] },
);

/** Pages of deliveries to look through for a page of events: an event may have thousands of them. */
const MAX_LOOKS = 8;

export function eventReadRoutes({ pool, endpoints }: ApiContext): FastifyPluginAsync {
  async function find(caller: Caller, text: string) {
    const event = await findEvent(pool, eventId(text), caller.tenant);
    if (event === null) throw eventNotFound(text);
    return event;
  }

  /** The events of deliveries that are dead or wait, newest first, one more than the page has if there are more. */
  async function eventsWith(
    status: 'dead' | 'waiting',
    query: EventQuery,
    tenant: string | null,
    { from, before }: IdRange,
    limit: number,
  ): Promise<{ ids: Uuid[]; resumeAt: Uuid | null }> {
    const ids: Uuid[] = [];
    const filter = { tenant, endpointId: null, eventId: null, status, type: query.type ?? null, from };
    let end = before;
    for (let looks = 0; looks < MAX_LOOKS && ids.length <= limit; looks += 1) {
      const { rows, resumeAt } = await listDeliveries(pool, { ...filter, before: end, limit: limit + 1 });
      for (const { id } of rows) if (ids.at(-1) !== eventIdOfDelivery(id)) ids.push(eventIdOfDelivery(id));
      const last = ids.at(-1) ?? null;
      if (rows.length <= limit) {
        // In the middle of an event that has been found, its other deliveries would find it again.
        const isFound = resumeAt !== null && eventIdOfDelivery(resumeAt) === last;
        return { ids: ids.slice(0, limit + 1), resumeAt: isFound ? last : resumeAt };
      }
      // An event's id is the smallest of its deliveries' ids: go on with the event before.
      end = last;
    }
    return { ids: ids.slice(0, limit + 1), resumeAt: end };
  }

  return async (server) => {
    server.get<{ Querystring: EventQuery }>(
      '/events',
      {
        schema: {
          operationId: 'listEvents',
          summary: 'List events',
          tags: ['Events'],
          querystring: EventQuery,
          response: { 200: Page(EventSchema) },
        },
      },
      async (request) => {
        const { query } = request;
        const limit = query.limit ?? DEFAULT_LIMIT;
        const tenant = tenantOf(request.caller, query.tenant);
        const range = rangeOf(query);
        if (query.idempotency_key !== undefined) {
          const holders = await findEventsByKey(pool, tenant, query.idempotency_key, DEFAULT_TENANT);
          const fitting = holders.filter(
            ({ id, type }) =>
              (range.from === null || id >= range.from) &&
              (range.before === null || id < range.before) &&
              (query.type === undefined || type === query.type),
          );
          return toPage(fitting.slice(0, limit + 1), limit, idPrefixes.event, showEvent);
        }
        if (query.has !== undefined) {
          const { ids, resumeAt } = await eventsWith(
            query.has as 'dead' | 'waiting',
            query,
            tenant,
            range,
            limit,
          );
          return toPage(await loadEventViews(pool, ids), limit, idPrefixes.event, showEvent, resumeAt);
        }
        const { rows, resumeAt } = await listEvents(pool, {
          tenant,
          type: query.type ?? null,
          ...range,
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.event, showEvent, resumeAt);
      },
    );

    server.get<ById>(
      '/events/:id',
      {
        schema: {
          operationId: 'getEvent',
          summary: 'Show an event, with its data',
          tags: ['Events'],
          params: EventId,
          response: { 200: EventWithData },
        },
      },
      async (request, reply) => {
        const event = await find(request.caller, request.params.id);
        // The producer's own bytes, put into the answer as they are.
        const head = `${JSON.stringify(showEvent(event)).slice(0, -1)},"data":`;
        return reply
          .header('content-type', 'application/json; charset=utf-8')
          .send(Buffer.concat([Buffer.from(head), event.data ?? Buffer.from('null'), Buffer.from('}')]));
      },
    );

    server.get<ById & { Querystring: Static<typeof DeliveriesOfEvent> }>(
      '/events/:id/deliveries',
      {
        schema: {
          operationId: 'listEventDeliveries',
          summary: 'List the deliveries of an event',
          tags: ['Events'],
          params: EventId,
          querystring: DeliveriesOfEvent,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async (request) => {
        const { id } = await find(request.caller, request.params.id);
        const { limit = DEFAULT_LIMIT, cursor, status } = request.query;
        const { rows, resumeAt } = await listDeliveries(pool, {
          // The event is the caller's, and so are its deliveries.
          tenant: null,
          endpointId: null,
          eventId: id,
          status: (status ?? null) as DeliveryStatus | null,
          type: null,
          ...idBounds({ event_id: publicId(idPrefixes.event, id), ...(cursor !== undefined && { cursor }) }),
          limit: limit + 1,
        });
        const show = (row: DeliveryView) => showDelivery(row, endpoints.get(row.endpoint_id));
        return toPage(rows, limit, idPrefixes.delivery, show, resumeAt);
      },
    );

    server.get<ById & { Querystring: Static<typeof AttemptsOfEvent> }>(
      '/events/:id/attempts',
      {
        schema: {
          operationId: 'listEventAttempts',
          summary: 'List the attempts of all deliveries of an event',
          description: 'Delivery by delivery, oldest first.',
          tags: ['Events'],
          params: EventId,
          querystring: AttemptsOfEvent,
          response: { 200: Page(AttemptSchema) },
        },
      },
      async (request) => {
        const { id } = await find(request.caller, request.params.id);
        const { limit = DEFAULT_LIMIT, cursor } = request.query;
        const [first, last] = deliveryRangeOfEvent(id);
        const rows = await listAttempts(pool, { first, last, after: readPlace(cursor), limit: limit + 1 });
        const shown = rows.slice(0, limit);
        const end = shown.at(-1);
        return {
          data: shown.map(showAttempt),
          next_cursor: rows.length > limit && end !== undefined ? showPlace(end) : null,
        };
      },
    );
  };
}

/** Attempts are listed delivery by delivery: where a page ended is both. */
function showPlace(place: { delivery_id: Uuid; id: Uuid }): string {
  return `${publicId(idPrefixes.delivery, place.delivery_id)}.${publicId(idPrefixes.attempt, place.id)}`;
}

function readPlace(cursor: string | undefined): { deliveryId: Uuid; attemptId: Uuid } | null {
  if (cursor === undefined) return null;
  const [delivery = '', attempt = ''] = cursor.split('.');
  return {
    deliveryId: readCursor(idPrefixes.delivery, delivery)!,
    attemptId: readCursor(idPrefixes.attempt, attempt)!,
  };
}

function rangeOf(query: EventQuery): { from: Uuid | null; before: Uuid | null } {
  const cursor = readCursor(idPrefixes.event, query.cursor);
  const since = readTime('since', query.since);
  const until = readTime('until', query.until);
  const upper = [cursor, until === null ? null : firstIdAt(until)].filter((id) => id !== null);
  return { from: since === null ? null : firstIdAt(since), before: upper.toSorted()[0] ?? null };
}

export function eventId(text: string): Uuid {
  const id = parsePublicId(idPrefixes.event, text);
  if (id === null) throw eventNotFound(text);
  return id;
}

export const eventNotFound = (text: string) => new Problem('not_found', `There is no event ${text}.`);

function showEvent(event: EventView): Shown<typeof EventSchema> {
  const { options } = event;
  return {
    id: publicId(idPrefixes.event, event.id),
    type: event.type,
    tenant: event.tenant,
    created_at: new Date(timeOfId(event.id)),
    deliveries: event.deliveries,
    idempotency_key: event.idempotency_key,
    schema_version: options?.schema_version ?? null,
    channels: options?.channels ?? [],
    endpoint_ids: options?.endpoint_ids?.map((id) => publicId(idPrefixes.endpoint, id)) ?? null,
    deliver_at: options?.deliver_at === undefined ? null : new Date(options.deliver_at),
    headers: options?.headers ?? {},
    duplicate_of: showId(options?.duplicate_of),
    key_conflict_with: showId(options?.key_conflict_with),
  };
}

const showId = (id: Uuid | undefined): string | null =>
  id === undefined ? null : publicId(idPrefixes.event, id);
