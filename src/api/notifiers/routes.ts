import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes } from '../../domain/ids.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import type { Notifiers } from '../../manage/notifiers.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import { findNotifier, listNotifiers, type NotifierView } from '../../postgres/queries/notifiers.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Nothing, Page } from '../openapi/describe.ts';
import { NewNotifier, NotifierId, NotifierList, NotifierSchema } from './schema.ts';
import { showNotifier } from './view.ts';

type ById = { Params: Static<typeof NotifierId> };

export function notifierRoutes(
  notifiers: Notifiers,
  { pool, endpoints }: Pick<ApiDependencies, 'pool' | 'endpoints'>,
): FastifyPluginAsync {
  const show = (caller: Caller, view: NotifierView) => showNotifier(caller, view, notifiers.urlOf(view));
  return async (server) => {
    server.post<{ Body: Static<typeof NewNotifier> }>(
      '/notifiers',
      {
        schema: {
          operationId: 'createNotifier',
          summary: 'Create a notifier',
          description:
            'It posts notices about endpoints and deliveries to a chat, or sends them by e-mail. The e-mail address of a tenant gets a link first, and notices once its owner has confirmed.',
          tags: ['Notifiers'],
          body: NewNotifier,
          response: { 201: NotifierSchema },
          problems: {
            url_invalid: '`url` is not a complete http or https URL.',
            url_forbidden: '`url` points to an address that Posthorn may not call, or is not https.',
            conflict:
              'The data of the tenant is being deleted, or a node of the previous release is running.',
            rate_limited:
              'Too many confirmations were sent to this address or by this tenant, or the key makes too many requests.',
          },
        },
      },
      async (request, reply) => {
        const shown = show(request.caller, await notifiers.create(request, request.body));
        return reply.code(201).header('location', `/v1/notifiers/${shown.id}`).send(shown);
      },
    );

    server.get<{ Querystring: Static<typeof NotifierList> }>(
      '/notifiers',
      {
        schema: {
          operationId: 'listNotifiers',
          summary: 'List notifiers',
          tags: ['Notifiers'],
          querystring: NotifierList,
          response: { 200: Page(NotifierSchema) },
        },
      },
      async ({ caller, query }) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant } = query;
        const rows = await listNotifiers(pool, {
          tenant: visibleTenant(caller, tenant),
          before: readCursor(idPrefixes.notifier, cursor),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.notifier, (row) => show(caller, row));
      },
    );

    server.get<ById>(
      '/notifiers/:id',
      {
        schema: {
          operationId: 'getNotifier',
          summary: 'Show a notifier',
          tags: ['Notifiers'],
          params: NotifierId,
          response: { 200: NotifierSchema },
        },
      },
      async ({ caller, params }) => {
        const id = readObjectId('notifier', params.id);
        const notifier = await findNotifier(pool, id, caller.tenant);
        if (notifier === null) throw notFound('notifier', id);
        return show(caller, notifier);
      },
    );

    server.delete<ById>(
      '/notifiers/:id',
      {
        schema: {
          operationId: 'deleteNotifier',
          summary: 'Delete a notifier',
          description: 'Posthorn skips messages that wait. The history of the notifier stays readable.',
          tags: ['Notifiers'],
          params: NotifierId,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        await notifiers.delete(request, readObjectId('notifier', request.params.id));
        return reply.code(204).send();
      },
    );

    server.post<ById>(
      '/notifiers/:id/test',
      {
        schema: {
          operationId: 'testNotifier',
          summary: 'Send a test message',
          description: 'Posthorn sends it at once, without waiting for other notices.',
          tags: ['Notifiers'],
          params: NotifierId,
          response: { 202: DeliverySchema },
          problems: {
            conflict: 'The e-mail address is not confirmed, or the notifier is disabled.',
            rate_limited:
              'The notifier sent 5 test messages in the last minute or its tenant 20, or the key makes too many requests.',
          },
        },
      },
      async (request, reply) => {
        const id = readObjectId('notifier', request.params.id);
        const delivery = await notifiers.sendTest(request, id);
        return reply.code(202).send(showDelivery(delivery, endpoints.get(id), request.caller));
      },
    );
  };
}
