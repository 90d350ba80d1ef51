import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { type DeliveryStatus, deliveryStatuses } from '../domain/delivery.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import {
  deliveryRangeOfEvent,
  eventIdOfDelivery,
  firstIdAt,
  idPrefixes,
  parsePublicId,
  publicId,
  timeOfId,
  type Uuid,
} from '../domain/ids.ts';
import { type ErrorClass, errorClasses } from '../domain/outcome.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { maxAttempts } from '../domain/retry.ts';
import { readTime } from '../ingest/index.ts';
import {
  type AttemptView,
  type DeliveryView,
  findDelivery,
  listAttempts,
  listDeliveries,
} from '../store/queries/deliveries.ts';
import { endpointExisted } from '../store/queries/endpoints.ts';
import { tenantOf } from './auth.ts';
import type { ApiContext } from './context.ts';
import { endpointId } from './endpoints.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, toPage } from './pagination.ts';

const DeliveryQuery = Type.Object(
  {
    ...PageQuery,
    tenant: Type.Optional(Type.String()),
    endpoint_id: Type.Optional(Type.String()),
    event_id: Type.Optional(Type.String()),
    status: Type.Optional(Type.Enum([...deliveryStatuses])),
    type: Type.Optional(Type.String({ maxLength: 128 })),
    since: Type.Optional(Type.String({ description: 'Accepted at or after this RFC 3339 time.' })),
    until: Type.Optional(Type.String({ description: 'Accepted before this RFC 3339 time.' })),
  },
  { additionalProperties: false },
);
type DeliveryQuery = Static<typeof DeliveryQuery>;
type ById = { Params: { id: string } };

export function deliveryRoutes({ pool, endpoints }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: DeliveryQuery }>(
      '/deliveries',
      { schema: { querystring: DeliveryQuery } },
      async (request) => {
        const { query } = request;
        const limit = query.limit ?? DEFAULT_LIMIT;
        const rows = await listDeliveries(pool, {
          tenant: tenantOf(request.caller, query.tenant),
          endpointId:
            query.endpoint_id === undefined
              ? null
              : parseId(query.endpoint_id, 'endpoint_id', idPrefixes.endpoint),
          status: (query.status ?? null) as DeliveryStatus | null,
          type: query.type ?? null,
          ...idBounds(query),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.delivery, (row) =>
          showDelivery(row, endpoints.get(row.endpoint_id)),
        );
      },
    );

    server.get<ById>('/deliveries/:id', async (request) => {
      const view = await findDelivery(pool, deliveryId(request.params.id), request.caller.tenant);
      if (view === null) throw deliveryNotFound(request.params.id);
      return showDelivery(view, endpoints.get(view.endpoint_id));
    });

    server.get<ById>('/deliveries/:id/attempts', async (request) => {
      const id = deliveryId(request.params.id);
      if ((await findDelivery(pool, id, request.caller.tenant)) === null)
        throw deliveryNotFound(request.params.id);
      // A delivery has at most as many attempts as its schedule and its replays allow: no pages needed.
      const rows = await listAttempts(pool, { first: id, last: id, after: null, limit: 1000 });
      return { data: rows.map(showAttempt), next_cursor: null };
    });

    server.get<ById & { Querystring: DeliveryQuery }>(
      '/endpoints/:id/deliveries',
      { schema: { querystring: DeliveryQuery } },
      async (request) => {
        const { query } = request;
        const id = endpointId(request.params.id);
        const tenant = tenantOf(request.caller, query.tenant);
        if (!(await endpointExisted(pool, id, request.caller.tenant)))
          throw new Problem('not_found', `There is no endpoint ${request.params.id}.`);
        const limit = query.limit ?? DEFAULT_LIMIT;
        const rows = await listDeliveries(pool, {
          tenant,
          endpointId: id,
          status: (query.status ?? null) as DeliveryStatus | null,
          type: query.type ?? null,
          ...idBounds(query),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.delivery, (row) =>
          showDelivery(row, endpoints.get(row.endpoint_id)),
        );
      },
    );
  };
}

export function parseId(text: string, path: string, prefix: 'ep' | 'evt'): Uuid {
  const id = parsePublicId(prefix, text);
  if (id === null) throw invalidField(path, `is not an id of this kind (${prefix}_…)`);
  return id;
}

/** An event, a time range and a cursor all narrow the range of ids. */
export function idBounds(query: Pick<DeliveryQuery, 'cursor' | 'event_id' | 'since' | 'until'>): {
  from: Uuid | null;
  before: Uuid | null;
} {
  const lower: Uuid[] = [];
  const upper: Uuid[] = [];
  const cursor = readCursor(idPrefixes.delivery, query.cursor);
  if (cursor !== null) upper.push(cursor);
  if (query.event_id !== undefined) {
    const [first, last] = deliveryRangeOfEvent(parseId(query.event_id, 'event_id', idPrefixes.event));
    lower.push(first);
    upper.push(`${last}~`);
  }
  const since = readTime('since', query.since);
  const until = readTime('until', query.until);
  if (since !== null) lower.push(firstIdAt(since));
  if (until !== null) upper.push(firstIdAt(until));
  return { from: lower.toSorted().at(-1) ?? null, before: exclusive(upper.toSorted()[0] ?? null) };
}

/** `last~` stands for "just after last": the next id there could be. */
function exclusive(bound: Uuid | null): Uuid | null {
  if (bound === null || !bound.endsWith('~')) return bound;
  const digits = (BigInt(`0x${bound.slice(0, -1).replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`;
}

export function deliveryId(text: string): Uuid {
  const id = parsePublicId(idPrefixes.delivery, text);
  if (id === null) throw deliveryNotFound(text);
  return id;
}

export const deliveryNotFound = (text: string) => new Problem('not_found', `There is no delivery ${text}.`);

export function showDelivery(view: DeliveryView, endpoint: Endpoint | undefined) {
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

function waitingReason(view: DeliveryView, endpoint: Endpoint | undefined): string | null {
  if (endpoint?.paused) return 'paused';
  if (view.waits_for !== null) return view.waits_for;
  return view.due_at === null ? null : 'schedule';
}

export function showAttempt(attempt: AttemptView) {
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
    request_headers: JSON.parse(attempt.request_headers) as Record<string, string>,
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
