import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { type DeliveryStatus, deliveryStatuses } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, firstIdAt, idPrefixes, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import { type DeliveryView, findDelivery, listAttempts } from '../../postgres/queries/deliveries.ts';
import { endpointExisted } from '../../postgres/queries/endpoints.ts';
import { type DeliveryFilter, listDeliveries } from '../../postgres/queries/list-deliveries.ts';
import type { ApiContext } from '../dependencies.ts';
import { endpointId } from '../endpoints/routes.ts';
import { tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage } from '../http/pagination.ts';
import { idParams, Page } from '../openapi/describe.ts';
import { AttemptSchema, DeliverySchema, showAttempt, showDelivery } from './view.ts';

const { endpoint_id, ...ofEndpoint } = {
  ...PageQuery,
  ...ListFilters,
  status: Type.Optional(Type.Enum([...deliveryStatuses])),
};
const DeliveryQuery = Type.Object({ ...ofEndpoint, endpoint_id }, { additionalProperties: false });
/** The endpoint is named by the address. */
const EndpointDeliveryQuery = Type.Object(ofEndpoint, { additionalProperties: false });
type DeliveryQuery = Static<typeof DeliveryQuery>;
type EndpointDeliveryQuery = Static<typeof EndpointDeliveryQuery>;
const DeliveryId = idParams('dlv', 'delivery');
const EndpointId = idParams('ep', 'endpoint');
type ById = { Params: { id: string } };

export function deliveryRoutes({ pool, endpoints }: ApiContext): FastifyPluginAsync {
  async function list(query: EndpointDeliveryQuery, only: Pick<DeliveryFilter, 'tenant' | 'endpointId'>) {
    const limit = query.limit ?? DEFAULT_LIMIT;
    const { rows, resumeAt } = await listDeliveries(pool, {
      ...only,
      status: (query.status ?? null) as DeliveryStatus | null,
      type: query.type ?? null,
      eventId: query.event_id === undefined ? null : parseId(query.event_id, 'event_id', idPrefixes.event),
      ...idBounds(query),
      limit: limit + 1,
    });
    const show = (row: DeliveryView) => showDelivery(row, endpoints.get(row.endpoint_id));
    return toPage(rows, limit, idPrefixes.delivery, show, resumeAt);
  }

  return async (server) => {
    server.get<{ Querystring: DeliveryQuery }>(
      '/deliveries',
      {
        schema: {
          operationId: 'listDeliveries',
          summary: 'List deliveries',
          tags: ['Deliveries'],
          querystring: DeliveryQuery,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async ({ query, caller }) =>
        list(query, {
          tenant: tenantOf(caller, query.tenant),
          endpointId:
            query.endpoint_id === undefined
              ? null
              : parseId(query.endpoint_id, 'endpoint_id', idPrefixes.endpoint),
        }),
    );

    server.get<ById>(
      '/deliveries/:id',
      {
        schema: {
          operationId: 'getDelivery',
          summary: 'Show a delivery',
          tags: ['Deliveries'],
          params: DeliveryId,
          response: { 200: DeliverySchema },
        },
      },
      async (request) => {
        const view = await findDelivery(pool, deliveryId(request.params.id), request.caller.tenant);
        if (view === null) throw deliveryNotFound(request.params.id);
        return showDelivery(view, endpoints.get(view.endpoint_id));
      },
    );

    server.get<ById>(
      '/deliveries/:id/attempts',
      {
        schema: {
          operationId: 'listDeliveryAttempts',
          summary: 'List the attempts of a delivery',
          description: 'Oldest first, all of them in one page.',
          tags: ['Deliveries'],
          params: DeliveryId,
          response: { 200: Page(AttemptSchema) },
        },
      },
      async (request) => {
        const id = deliveryId(request.params.id);
        if ((await findDelivery(pool, id, request.caller.tenant)) === null)
          throw deliveryNotFound(request.params.id);
        // A delivery has at most as many attempts as its schedule and its replays allow: no pages needed.
        const rows = await listAttempts(pool, { first: id, last: id, after: null, limit: 1000 });
        return { data: rows.map(showAttempt), next_cursor: null };
      },
    );

    server.get<ById & { Querystring: EndpointDeliveryQuery }>(
      '/endpoints/:id/deliveries',
      {
        schema: {
          operationId: 'listEndpointDeliveries',
          summary: 'List the deliveries to an endpoint',
          description: 'Also of one that was deleted.',
          tags: ['Endpoints'],
          params: EndpointId,
          querystring: EndpointDeliveryQuery,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async ({ query, caller, params }) => {
        const id = endpointId(params.id);
        const tenant = tenantOf(caller, query.tenant);
        if (!(await endpointExisted(pool, id, caller.tenant)))
          throw new Problem('not_found', `There is no endpoint ${params.id}.`);
        return list(query, { tenant, endpointId: id });
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
