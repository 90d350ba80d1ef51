import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { idPrefixes, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { type DeadReason, deadReasons } from '../../domain/outcome.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  type DeadLetterView,
  discardDeadLetter,
  listDeadLetters,
  restoreDeadLetter,
} from '../../postgres/queries/dead-letters.ts';
import { findDelivery } from '../../postgres/queries/deliveries.ts';
import type { Selection } from '../../postgres/queries/select-deliveries.ts';
import { deliveryId, deliveryNotFound, idBounds, parseId } from '../deliveries/routes.ts';
import { DeliverySchema, showDelivery } from '../deliveries/view.ts';
import type { ApiContext } from '../dependencies.ts';
import { type Caller, nameOf, tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, toPage } from '../http/pagination.ts';
import { idParams, Page } from '../openapi/describe.ts';
import { CountSchema, orderTask, TaskSchema } from '../tasks/routes.ts';

const { event_id, ...common } = ListFilters;
const filters = { ...common, reason: Type.Optional(Type.Enum([...deadReasons])) };
const DeadLetterQuery = Type.Object({ ...PageQuery, ...filters, event_id }, { additionalProperties: false });
const BulkOrder = Type.Object(
  {
    filter: Type.Object(
      {
        ...filters,
        ids: Type.Optional(
          Type.Array(Type.String({ maxLength: 64 }), {
            minItems: 1,
            maxItems: 1000,
            description: 'These deliveries only.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only count.' })),
    why: Type.Optional(
      Type.String({ maxLength: 500, description: 'Recorded with those that are discarded.' }),
    ),
  },
  {
    additionalProperties: false,
    title: 'DeadLetterOrder',
    examples: [{ filter: { tenant: 'acme', type: 'order.created', reason: 'exhausted' }, dry_run: true }],
  },
);
type BulkOrder = Static<typeof BulkOrder>;
const Discard = Type.Object(
  { why: Type.Optional(Type.String({ maxLength: 500, description: 'Recorded with it.' })) },
  { additionalProperties: false, title: 'Discard', examples: [{ why: 'The order was cancelled.' }] },
);
const DeliveryId = idParams('dlv', 'delivery');
type ById = { Params: { id: string } };

export function deadLetterRoutes(context: ApiContext): FastifyPluginAsync {
  const { pool, endpoints, wake } = context;
  const show = (view: DeadLetterView) => ({
    ...showDelivery(view, endpoints.get(view.endpoint_id)),
    dead_at: view.dead_at,
  });

  return async (server) => {
    server.get<{ Querystring: Static<typeof DeadLetterQuery> }>(
      '/dead-letters',
      {
        schema: {
          operationId: 'listDeadLetters',
          summary: 'List dead letters',
          description: 'Also those that are being sent again.',
          tags: ['Dead letters'],
          querystring: DeadLetterQuery,
          response: { 200: Page(DeliverySchema) },
        },
      },
      async (request) => {
        const { query } = request;
        const limit = query.limit ?? DEFAULT_LIMIT;
        const { rows, resumeAt } = await listDeadLetters(pool, {
          tenant: tenantOf(request.caller, query.tenant),
          endpointId: readEndpointId(query.endpoint_id, 'endpoint_id'),
          type: query.type ?? null,
          reason: (query.reason ?? null) as DeadReason | null,
          ...idBounds(query),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.delivery, show, resumeAt);
      },
    );

    for (const kind of ['replay', 'discard'] as const) {
      server.post<{ Body: BulkOrder }>(
        `/dead-letters/${kind}`,
        {
          schema: {
            operationId: `${kind}DeadLetters`,
            summary: kind === 'replay' ? 'Send dead letters again' : 'Discard dead letters',
            description: 'In the background: the answer is a task. A dry run only counts.',
            tags: ['Dead letters'],
            body: BulkOrder,
            response: { 200: CountSchema, 202: TaskSchema },
          },
        },
        async (request, reply) => {
          const { filter, dry_run = false, why = null } = request.body;
          const selection = toSelection(filter, request.caller);
          return orderTask(context, request, reply, { kind, selection, why, dryRun: dry_run });
        },
      );
    }

    server.post<ById & { Body: Static<typeof Discard> }>(
      '/deliveries/:id/discard',
      {
        schema: {
          operationId: 'discardDelivery',
          summary: 'Discard a dead delivery',
          description: 'Can be undone for a while.',
          tags: ['Dead letters'],
          params: DeliveryId,
          body: Discard,
          response: { 200: DeliverySchema },
          problems: { conflict: 'The delivery is not dead.' },
        },
      },
      async (request) => {
        const id = deliveryId(request.params.id);
        const before = await findDelivery(pool, id, request.caller.tenant);
        if (before === null) throw deliveryNotFound(request.params.id);
        const { why = null } = request.body;
        await inTransaction(pool, async (client) => {
          const discarded =
            before.status === 'dead' && (await discardDeadLetter(client, id, nameOf(request.caller), why));
          if (!discarded) throw new Problem('conflict', 'Only a dead delivery can be discarded.');
          await request.audit.record(client, {
            tenant: before.tenant,
            objectId: request.params.id,
            changes: why === null ? [] : [{ field: 'why', after: why }],
          });
        });
        // A FIFO lane may have been waiting for just that.
        wake(before.endpoint_id);
        const view = (await findDelivery(pool, id, request.caller.tenant)) ?? before;
        return showDelivery(view, endpoints.get(view.endpoint_id));
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
          problems: { conflict: 'The delivery is not discarded, or was too long ago.' },
        },
      },
      async (request) => {
        const id = deliveryId(request.params.id);
        const before = await findDelivery(pool, id, request.caller.tenant);
        if (before === null) throw deliveryNotFound(request.params.id);
        if (before.status !== 'discarded') throw new Problem('conflict', 'The delivery is not discarded.');
        await inTransaction(pool, async (client) => {
          if (!(await restoreDeadLetter(client, id, context.discardUndoMs)))
            throw new Problem('conflict', 'It was discarded too long ago. It can still be replayed.');
          await request.audit.record(client, { tenant: before.tenant, objectId: request.params.id });
        });
        wake(before.endpoint_id);
        const view = (await findDelivery(pool, id, request.caller.tenant)) ?? before;
        return showDelivery(view, endpoints.get(view.endpoint_id));
      },
    );
  };
}

function toSelection(filter: BulkOrder['filter'], caller: Caller): Selection {
  return {
    tenant: tenantOf(caller, filter.tenant, 'filter.tenant'),
    endpointId: readEndpointId(filter.endpoint_id, 'filter.endpoint_id'),
    statuses: ['dead'],
    type: filter.type ?? null,
    reason: (filter.reason ?? null) as DeadReason | null,
    since: readTime('filter.since', filter.since),
    until: readTime('filter.until', filter.until),
    ids: filter.ids?.map(readDeliveryId) ?? null,
  };
}

function readEndpointId(text: string | undefined, path: string): Uuid | null {
  return text === undefined ? null : parseId(text, path, idPrefixes.endpoint);
}

function readDeliveryId(text: string, index: number): Uuid {
  const id = parsePublicId(idPrefixes.delivery, text);
  if (id === null) throw invalidField(`filter.ids[${index}]`, 'is not a delivery id (dlv_…)');
  return id;
}
