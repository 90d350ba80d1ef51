import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { Problem } from '../../domain/problem.ts';
import type { ControlPlane } from '../../manage/control-plane.ts';
import { tenantNotFound } from '../../manage/tenants.ts';
import type { Pool } from '../../postgres/database.ts';
import { findTenant, listTenants } from '../../postgres/queries/tenants.ts';
import { ARCHIVE_UNTIL, KAFKA_UNTIL } from '../events/expunge-routes.ts';
import { readNamedCursor, toNamedPage } from '../http/named-pages.ts';
import { DEFAULT_LIMIT } from '../http/pagination.ts';
import { Nothing, Page } from '../openapi/describe.ts';
import { CountSchema, TaskSchema } from '../tasks/schema.ts';
import { sendOrder } from '../tasks/view.ts';
import { TenantBody, TenantDeletion, TenantId, TenantList, TenantSchema } from './schema.ts';
import { showTenant } from './view.ts';

const tags = ['Tenants'] as const;
type ById = { Params: { id: string } };

export function tenantRoutes(
  { tenants, expunge }: Pick<ControlPlane, 'tenants' | 'expunge'>,
  pool: Pool,
): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof TenantList> }>(
      '/tenants',
      {
        schema: {
          operationId: 'listTenants',
          summary: 'List tenants, newest first',
          tags,
          querystring: TenantList,
          response: { 200: Page(TenantSchema) },
          problems: { forbidden: 'The key is for one tenant.' },
        },
      },
      async (request) => {
        if (request.caller.tenant !== null)
          throw new Problem('forbidden', 'This key is for one tenant. Get that tenant by its id instead.');
        const { limit = DEFAULT_LIMIT, cursor } = request.query;
        const rows = await listTenants(pool, { before: readNamedCursor(cursor), limit: limit + 1 });
        return toNamedPage(rows, limit, ({ id }) => id, showTenant);
      },
    );

    server.get<ById>(
      '/tenants/:id',
      {
        schema: {
          operationId: 'getTenant',
          summary: 'Show a tenant',
          tags,
          params: TenantId,
          response: { 200: TenantSchema },
        },
      },
      async (request) => {
        const { id } = request.params;
        const { tenant } = request.caller;
        const found = tenant === null || tenant === id ? await findTenant(pool, id) : null;
        if (found === null) throw tenantNotFound();
        return showTenant(found);
      },
    );

    server.put<ById & { Body: Static<typeof TenantBody> }>(
      '/tenants/:id',
      {
        schema: {
          operationId: 'putTenant',
          summary: 'Create or replace a tenant',
          tags,
          params: TenantId,
          body: TenantBody,
          response: { 200: TenantSchema, 201: TenantSchema },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { created, tenant } = await tenants.put(request, request.params.id, request.body);
        return reply.code(created ? 201 : 200).send(showTenant(tenant));
      },
    );

    server.delete<ById & { Querystring: Static<typeof TenantDeletion> }>(
      '/tenants/:id',
      {
        schema: {
          operationId: 'deleteTenant',
          summary: 'Delete a tenant that has no endpoints and no keys, or everything of a tenant',
          description:
            'With `expunge=true` a task deletes every row of the tenant: events, deliveries, attempts, endpoints, keys, statistics, audit entries. Publishing for it is 409 until the task has ended. It cannot be undone. If the archive contains data of the tenant, the header `posthorn-archive-until` says until when. If Posthorn reads events from Kafka, `posthorn-kafka-until` says until when the topics may hold records of the tenant: a time, `unlimited`, or `unknown` if Kafka does not answer.',
          tags,
          params: TenantId,
          querystring: TenantDeletion,
          response: { 200: CountSchema, 202: TaskSchema, 204: Nothing },
          problems: { conflict: 'It still has endpoints or keys, or its data is being deleted already.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { id } = request.params;
        const { expunge: everything = false, confirm, dry_run = false } = request.query;
        if (everything) {
          const result = await expunge.tenant(request, id, { confirm, dryRun: dry_run });
          if ('task' in result) {
            const [archiveUntil, kafkaUntil] = await Promise.all([
              expunge.archiveUntil(),
              expunge.kafkaUntil(),
            ]);
            if (archiveUntil !== null) reply.header(ARCHIVE_UNTIL, new Date(archiveUntil).toISOString());
            if (kafkaUntil !== null) reply.header(KAFKA_UNTIL, kafkaUntil);
          }
          return sendOrder(reply, result);
        }
        await tenants.delete(request, id);
        return reply.code(204).send();
      },
    );
  };
}
