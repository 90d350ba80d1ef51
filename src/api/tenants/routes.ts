import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { Problem } from '../../domain/problem.ts';
import { type Tenants, tenantNotFound } from '../../manage/tenants.ts';
import type { Pool } from '../../postgres/database.ts';
import { findTenant, listTenants } from '../../postgres/queries/tenants.ts';
import { readNamedCursor, toNamedPage } from '../http/named-pages.ts';
import { DEFAULT_LIMIT } from '../http/pagination.ts';
import { Nothing, Page } from '../openapi/describe.ts';
import { TenantBody, TenantId, TenantList, TenantSchema } from './schema.ts';
import { showTenant } from './view.ts';

const tags = ['Tenants'] as const;
type ById = { Params: { id: string } };

export function tenantRoutes(tenants: Tenants, pool: Pool): FastifyPluginAsync {
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
          summary: 'Get a tenant',
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

    server.delete<ById>(
      '/tenants/:id',
      {
        schema: {
          operationId: 'deleteTenant',
          summary: 'Delete a tenant that has no endpoints and no keys',
          tags,
          params: TenantId,
          response: { 204: Nothing },
          problems: { conflict: 'It still has endpoints or keys.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        await tenants.delete(request, request.params.id);
        return reply.code(204).send();
      },
    );
  };
}
