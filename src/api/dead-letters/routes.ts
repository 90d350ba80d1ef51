import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes, type Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import { readTime } from '../../ingest/index.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import type { ControlPlane } from '../../manage/control-plane.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Pool } from '../../postgres/database.ts';
import type { EndpointCache } from '../../postgres/endpoint-cache.ts';
import { type DeadLetterView, listDeadLetters } from '../../postgres/queries/dead-letters.ts';
import type { Selection } from '../../postgres/queries/select-deliveries.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import { idBounds, parseId } from '../http/id-filters.ts';
import { DEFAULT_LIMIT, toPage } from '../http/pagination.ts';
import { idParams, Page } from '../openapi/describe.ts';
import { CountSchema, TaskSchema } from '../tasks/schema.ts';
import { sendOrder } from '../tasks/view.ts';
import { BulkOrder, DeadLetterQuery, Discard } from './schema.ts';

const DeliveryId = idParams('dlv', 'delivery');
type ById = { Params: { id: string } };

export function deadLetterRoutes(
  { deadLetters, replay }: Pick<ControlPlane, 'deadLetters' | 'replay'>,
  { pool, endpoints }: { readonly pool: Pool; readonly endpoints: EndpointCache },
): FastifyPluginAsync {
  const show = (view: DeadLetterView, reader: Caller) => ({
    ...showDelivery(view, endpoints.get(view.endpoint_id), reader),
    dead_at: view.dead_at,
  });

  return async (server) => {
    server.get<{ Querystring: Static<typeof DeadLetterQuery> }>(
      '/dead-letters',
      {
        schema: {
          operationId: 'listDeadLetters',
          summary: 'List dead letters',
          description: 'The list includes dead letters that are being replayed.',
          tags: ['Dead letters'],
          querystring: DeadLetterQuery,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async (request) => {
        const { query } = request;
        const limit = query.limit ?? DEFAULT_LIMIT;
        const { rows, resumeAt } = await listDeadLetters(pool, {
          tenant: visibleTenant(request.caller, query.tenant),
          endpointId: readEndpointId(query.endpoint_id, 'endpoint_id'),
          type: query.type ?? null,
          reason: (query.reason ?? null) as DeadReason | null,
          onlyDead: query.status === 'dead',
          ...idBounds(query),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.delivery, (row) => show(row, request.caller), resumeAt);
      },
    );

    for (const kind of ['replay', 'discard'] as const) {
      server.post<{ Body: BulkOrder }>(
        `/dead-letters/${kind}`,
        {
          schema: {
            operationId: `${kind}DeadLetters`,
            summary: kind === 'replay' ? 'Send dead letters again' : 'Discard dead letters',
            description: 'Runs in the background: the answer is a task. A dry run only counts.',
            tags: ['Dead letters'],
            body: BulkOrder,
            response: { 200: CountSchema, 202: TaskSchema },
          },
        },
        async (request, reply) => {
          const { filter, dry_run = false, why = null } = request.body;
          const order = { selection: toSelection(filter, request.caller), why, dryRun: dry_run };
          return sendOrder(
            reply,
            kind === 'replay'
              ? await replay.deadLetters(request, order)
              : await deadLetters.discardMany(request, order),
          );
        },
      );
    }

    server.post<ById & { Body: Static<typeof Discard> }>(
      '/deliveries/:id/discard',
      {
        schema: {
          operationId: 'discardDelivery',
          summary: 'Discard a dead delivery',
          description: 'You can undo it for a limited time.',
          tags: ['Dead letters'],
          params: DeliveryId,
          body: Discard,
          response: { 200: DeliverySchema },
          problems: { conflict: 'The delivery is not dead.' },
        },
      },
      async (request) => {
        const id = readObjectId('delivery', request.params.id);
        const delivery = await deadLetters.discard(request, id, request.body.why ?? null);
        return showDelivery(delivery, endpoints.get(delivery.endpoint_id), request.caller);
      },
    );

    server.post<ById>(
      '/deliveries/:id/restore',
      {
        schema: {
          operationId: 'restoreDelivery',
          summary: 'Undo a discard',
          tags: ['Dead letters'],
          params: DeliveryId,
          response: { 200: DeliverySchema },
          problems: { conflict: 'The delivery is not discarded, or was discarded too long ago.' },
        },
      },
      async (request) => {
        const delivery = await deadLetters.restore(request, readObjectId('delivery', request.params.id));
        return showDelivery(delivery, endpoints.get(delivery.endpoint_id), request.caller);
      },
    );
  };
}

function toSelection(filter: BulkOrder['filter'], caller: Caller): Selection {
  return {
    tenant: visibleTenant(caller, filter.tenant, 'filter.tenant'),
    endpointId: readEndpointId(filter.endpoint_id, 'filter.endpoint_id'),
    statuses: ['dead'],
    type: filter.type ?? null,
    reason: (filter.reason ?? null) as DeadReason | null,
    since: readTime('filter.since', filter.since),
    until: readTime('filter.until', filter.until),
    ids: filter.ids?.map(readDeliveryId) ?? null,
    eventId:
      filter.event_id === undefined ? null : parseId(filter.event_id, 'filter.event_id', idPrefixes.event),
  };
}

function readEndpointId(text: string | undefined, path: string): Uuid | null {
  return text === undefined ? null : parseId(text, path, idPrefixes.endpoint);
}

function readDeliveryId(text: string, index: number): Uuid {
  return parseId(text, `filter.ids[${index}]`, idPrefixes.delivery);
}
