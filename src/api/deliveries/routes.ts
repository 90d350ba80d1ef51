import type { FastifyPluginAsync } from 'fastify';
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { idPrefixes } from '../../domain/ids.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import { type DeliveryView, findDelivery, listAttempts } from '../../postgres/queries/deliveries.ts';
import { endpointExisted } from '../../postgres/queries/endpoints.ts';
import { type DeliveryFilter, listDeliveries } from '../../postgres/queries/list-deliveries.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { idBounds, parseId } from '../http/id-filters.ts';
import { DEFAULT_LIMIT, toPage } from '../http/pagination.ts';
import { Page } from '../openapi/describe.ts';
import {
  AttemptSchema,
  DeliveryId,
  DeliveryQuery,
  DeliverySchema,
  EndpointDeliveryQuery,
  EndpointId,
} from './schema.ts';
import { showAttempt, showDelivery } from './view.ts';

type ById = { Params: { id: string } };

export function deliveryRoutes({
  pool,
  endpoints,
}: Pick<ApiDependencies, 'pool' | 'endpoints'>): FastifyPluginAsync {
  async function list(
    caller: Caller,
    query: EndpointDeliveryQuery,
    only: Pick<DeliveryFilter, 'tenant' | 'endpointId'>,
  ) {
    const limit = query.limit ?? DEFAULT_LIMIT;
    const { rows, resumeAt } = await listDeliveries(pool, {
      ...only,
      status: (query.status ?? null) as DeliveryStatus | null,
      type: query.type ?? null,
      eventId: query.event_id === undefined ? null : parseId(query.event_id, 'event_id', idPrefixes.event),
      ...idBounds(query),
      limit: limit + 1,
    });
    const show = (row: DeliveryView) => showDelivery(row, endpoints.get(row.endpoint_id), caller);
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
        list(caller, query, {
          tenant: visibleTenant(caller, query.tenant),
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
        const id = readObjectId('delivery', request.params.id);
        const view = await findDelivery(pool, id, request.caller.tenant);
        if (view === null) throw notFound('delivery', id);
        return showDelivery(view, endpoints.get(view.endpoint_id), request.caller);
      },
    );

    server.get<ById>(
      '/deliveries/:id/attempts',
      {
        schema: {
          operationId: 'listDeliveryAttempts',
          summary: 'List the attempts of a delivery',
          description: 'The oldest attempt comes first. All of them are in one page.',
          tags: ['Deliveries'],
          params: DeliveryId,
          response: { 200: Page(AttemptSchema) },
        },
      },
      async (request) => {
        const id = readObjectId('delivery', request.params.id);
        if ((await findDelivery(pool, id, request.caller.tenant)) === null) throw notFound('delivery', id);
        // Schedules and replays keep the number of attempts small, so there are no pages.
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
          description: 'This also lists the deliveries to a deleted endpoint.',
          tags: ['Endpoints'],
          params: EndpointId,
          querystring: EndpointDeliveryQuery,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async ({ query, caller, params }) => {
        const id = readObjectId('endpoint', params.id);
        const tenant = visibleTenant(caller, query.tenant);
        if (!(await endpointExisted(pool, id, caller.tenant))) throw notFound('endpoint', id);
        return list(caller, query, { tenant, endpointId: id });
      },
    );
  };
}
