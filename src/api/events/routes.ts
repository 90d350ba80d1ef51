import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, firstIdAt, idPrefixes, publicId, type Uuid } from '../../domain/ids.ts';
import { readTime } from '../../ingest/index.ts';
import { eventNotFound } from '../../manage/archive.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Pool } from '../../postgres/database.ts';
import { type DeliveryView, listAttempts } from '../../postgres/queries/deliveries.ts';
import {
  countOutcomes,
  type EventOutcome,
  MAX_COUNTED_ALONE,
  MAX_COUNTED_PER_EVENT,
  MAX_COUNTED_PER_PAGE,
} from '../../postgres/queries/event-outcomes.ts';
import { type EventView, findEvent } from '../../postgres/queries/events.ts';
import { listDeliveries } from '../../postgres/queries/list-deliveries.ts';
import type { IdRange } from '../../postgres/queries/list-query.ts';
import { AttemptSchema, DeliverySchema } from '../deliveries/schema.ts';
import { showAttempt, showDelivery } from '../deliveries/view.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { earlierBound, idBounds } from '../http/id-filters.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Page } from '../openapi/describe.ts';
import { findEvents, type HasDelivery } from './find-events.ts';
import { TOO_MANY_READERS, takeTurn } from './read-payloads.ts';
import {
  AttemptsOfEvent,
  DeliveriesOfEvent,
  EventId,
  EventQuery,
  EventSchema,
  EventWithData,
} from './schema.ts';
import { readWhere } from './search-payloads.ts';
import { onceStored } from './unstored-events.ts';
import { showEvent } from './view.ts';

type ById = { Params: { id: string } };

export const ARCHIVED = 'Its retention has ended. The events of its day are in the archive.';

/** "What happened to this event?": events, their payloads, deliveries and attempts. */
export function eventRoutes({
  pool,
  clock,
  endpoints,
  unstoredEvents,
}: Pick<ApiDependencies, 'pool' | 'clock' | 'endpoints' | 'unstoredEvents'>): FastifyPluginAsync {
  async function find(caller: Caller, text: string) {
    const id = readObjectId('event', text);
    return onceStored(unstoredEvents, id, async () => {
      const event = await findEvent(pool, id, caller.tenant);
      if (event === null) throw await eventNotFound(pool, caller, id);
      return event;
    });
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
          problems: { rate_limited: `${TOO_MANY_READERS} Only requests with \`where\` read payloads.` },
        },
      },
      async (request, reply) => {
        const { limit = DEFAULT_LIMIT, type, idempotency_key, has } = request.query;
        const tenant = visibleTenant(request.caller, request.query.tenant);
        const where = readWhere(request.query.where);
        const search = {
          tenant,
          type: type ?? null,
          idempotencyKey: idempotency_key ?? null,
          has: (has ?? null) as HasDelivery | null,
          where,
          ...rangeOf(request.query),
          limit,
        };
        const findPage = () => findEvents(pool, clock, search);
        const { rows, resumeAt } = await (where === null ? findPage() : takeTurn(tenant, reply, findPage));
        const outcomes = await countListedOutcomes(pool, rows.slice(0, limit));
        const show = (event: EventView) => showEvent(event, outcomes.get(event.id) ?? null, request.caller);
        return toPage(rows, limit, idPrefixes.event, show, resumeAt);
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
          problems: { archived: ARCHIVED },
        },
      },
      async (request, reply) => {
        const event = await find(request.caller, request.params.id);
        const outcomes = await countOutcomes(pool, [event.id], MAX_COUNTED_ALONE);
        // `data` is the producer's own bytes, unchanged.
        const shown = showEvent(event, outcomes.get(event.id) ?? null, request.caller);
        const { unwritten_deliveries } = event;
        const head = `${JSON.stringify({ ...shown, unwritten_deliveries }).slice(0, -1)},"data":`;
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
          problems: { archived: ARCHIVED },
        },
      },
      async (request) => {
        const { id } = await find(request.caller, request.params.id);
        const { limit = DEFAULT_LIMIT, cursor, status } = request.query;
        const { rows, resumeAt } = await listDeliveries(pool, {
          // `find` has checked that the event belongs to the caller's tenant.
          tenant: null,
          endpointId: null,
          eventId: id,
          status: (status ?? null) as DeliveryStatus | null,
          type: null,
          ...idBounds({ event_id: publicId(idPrefixes.event, id), ...(cursor !== undefined && { cursor }) }),
          limit: limit + 1,
        });
        const show = (row: DeliveryView) => showDelivery(row, endpoints.get(row.endpoint_id), request.caller);
        return toPage(rows, limit, idPrefixes.delivery, show, resumeAt);
      },
    );

    server.get<ById & { Querystring: Static<typeof AttemptsOfEvent> }>(
      '/events/:id/attempts',
      {
        schema: {
          operationId: 'listEventAttempts',
          summary: 'List the attempts of all deliveries of an event',
          description: 'The list goes delivery by delivery, and the oldest attempt of each comes first.',
          tags: ['Events'],
          params: EventId,
          querystring: AttemptsOfEvent,
          response: { 200: Page(AttemptSchema) },
          problems: { archived: ARCHIVED },
        },
      },
      async (request) => {
        const { id } = await find(request.caller, request.params.id);
        const { limit = DEFAULT_LIMIT, cursor } = request.query;
        const [first, last] = deliveryRangeOfEvent(id);
        const rows = await listAttempts(pool, {
          first,
          last,
          after: readAttemptCursor(cursor),
          limit: limit + 1,
        });
        const shown = rows.slice(0, limit);
        const end = shown.at(-1);
        return {
          data: shown.map(showAttempt),
          next_cursor: rows.length > limit && end !== undefined ? attemptCursor(end) : null,
        };
      },
    );
  };
}

/** Counts the outcomes of the events of a page, newest first. Leaves out events that would make the page slow. */
async function countListedOutcomes(
  pool: Pool,
  events: readonly EventView[],
): Promise<Map<Uuid, EventOutcome>> {
  let counted = 0;
  const countable = events.filter(({ deliveries, options }) => {
    const expected = deliveries + (options?.skipped ?? 0);
    if (expected > MAX_COUNTED_PER_EVENT) return false;
    counted += expected;
    return counted <= MAX_COUNTED_PER_PAGE;
  });
  return countOutcomes(
    pool,
    countable.map(({ id }) => id),
    MAX_COUNTED_PER_EVENT,
  );
}

/** Attempts are listed delivery by delivery, so a cursor names a delivery and an attempt. */
function attemptCursor(last: { delivery_id: Uuid; id: Uuid }): string {
  return `${publicId(idPrefixes.delivery, last.delivery_id)}.${publicId(idPrefixes.attempt, last.id)}`;
}

function readAttemptCursor(cursor: string | undefined): { deliveryId: Uuid; attemptId: Uuid } | null {
  if (cursor === undefined) return null;
  const [delivery = '', attempt = ''] = cursor.split('.');
  return {
    deliveryId: readCursor(idPrefixes.delivery, delivery)!,
    attemptId: readCursor(idPrefixes.attempt, attempt)!,
  };
}

function rangeOf(query: EventQuery): IdRange {
  const cursor = readCursor(idPrefixes.event, query.cursor);
  const since = readTime('since', query.since);
  const until = readTime('until', query.until);
  return {
    from: since === null ? null : firstIdAt(since),
    before: earlierBound(cursor, until === null ? null : firstIdAt(until)),
  };
}
