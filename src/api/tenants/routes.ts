import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { isTenantId } from '../../domain/event.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { fieldChanges } from '../../manage/audit-trail.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  deleteTenant,
  findTenant,
  listTenants,
  lockTenant,
  putTenant,
  type TenantRecord,
  type TenantSettings,
  usesOfTenant,
} from '../../postgres/queries/tenants.ts';
import type { ApiContext } from '../dependencies.ts';
import { readNamedCursor, toNamedPage } from '../http/named-pages.ts';
import { DEFAULT_LIMIT, PageQuery } from '../http/pagination.ts';
import { burstOf, RateLimitSchema } from '../http/rate-limit.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, Nothing, Page, type Shown, Time } from '../openapi/describe.ts';

const MAX_METADATA_BYTES = 16 * 1024;

const TenantBody = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: 200 })),
    description: Type.Optional(Type.String({ maxLength: 2000 })),
    metadata: Type.Optional(Type.Record(Type.String({ maxLength: 128 }), Type.Unknown())),
    ingest_rate_limit: Type.Optional(Nullable(RateLimitSchema)),
  },
  {
    additionalProperties: false,
    title: 'TenantSettings',
    examples: [{ name: 'Acme Ltd', metadata: { plan: 'gold' }, ingest_rate_limit: { per_second: 50 } }],
  },
);

const TenantSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    description: Type.String(),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    ingest_rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: 'Tenant',
    examples: [
      {
        id: 'acme',
        name: 'Acme Ltd',
        description: '',
        metadata: { plan: 'gold' },
        ingest_rate_limit: { per_second: 50, burst: 50 },
        created_at: EXAMPLE_TIME,
        updated_at: EXAMPLE_TIME,
      },
    ],
  },
);
const ById = Type.Object({ id: Type.String({ description: 'The name of the tenant.' }) });
const List = Type.Object(PageQuery, { additionalProperties: false });
type ById = { Params: { id: string } };

const tags = ['Tenants'] as const;

export function tenantRoutes({ pool }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof List> }>(
      '/tenants',
      {
        schema: {
          operationId: 'listTenants',
          summary: 'List tenants, newest first',
          tags,
          querystring: List,
          response: { 200: Page(TenantSchema) },
          problems: { forbidden: 'The key is for one tenant.' },
        },
      },
      async (request) => {
        if (request.caller.tenant !== null)
          throw new Problem('forbidden', 'This key is for one tenant: ask for that one by its id.');
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
          params: ById,
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
          params: ById,
          body: TenantBody,
          response: { 200: TenantSchema, 201: TenantSchema },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const after = toSettings(request.params.id, request.body);
        const { created, tenant } = await inTransaction(pool, async (client) => {
          const before = await lockTenant(client, after.id);
          const changes = fieldChanges(
            before === null ? {} : settingsOf(before),
            settingsOf(after),
            (field) => field !== 'metadata',
          );
          if (before !== null && changes.length === 0) {
            request.audit.nothingChanged();
            return { created: false, tenant: before };
          }
          await request.audit.record(client, {
            action: before === null ? 'tenant.create' : 'tenant.update',
            tenant: after.id,
            objectId: after.id,
            changes,
          });
          return { created: before === null, tenant: await putTenant(client, after) };
        });
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
          params: ById,
          response: { 204: Nothing },
          problems: { conflict: 'It still has endpoints or keys.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { id } = request.params;
        await inTransaction(pool, async (client) => {
          if ((await lockTenant(client, id)) === null) throw tenantNotFound();
          const uses = await usesOfTenant(client, id);
          const left = (['endpoints', 'keys'] as const).filter((use) => uses[use]);
          if (left.length > 0)
            throw new Problem(
              'conflict',
              `The tenant "${id}" still has ${left.join(' and ')}. Delete them first, then the tenant.`,
            );
          await deleteTenant(client, id);
          await request.audit.record(client, { tenant: id, objectId: id });
        });
        return reply.code(204).send();
      },
    );
  };
}

const tenantNotFound = () => new Problem('not_found', 'There is no tenant of that name.');

function toSettings(id: string, body: Static<typeof TenantBody>): TenantSettings {
  if (!isTenantId(id))
    throw invalidField(
      'id',
      'must be 1 to 128 letters, digits, or any of . _ : - and start with a letter or digit',
    );
  const { name = '', description = '', metadata = {}, ingest_rate_limit: limit } = body;
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    throw invalidField('metadata', `must have at most ${MAX_METADATA_BYTES} bytes`);
  return {
    id,
    name,
    description,
    metadata,
    ingest_per_second: limit?.per_second ?? null,
    ingest_burst: limit == null ? null : burstOf(limit),
  };
}

const limitOf = ({ ingest_per_second, ingest_burst }: TenantSettings) =>
  ingest_per_second === null || ingest_burst === null
    ? null
    : { per_second: ingest_per_second, burst: ingest_burst };

const settingsOf = (tenant: TenantSettings) => ({
  name: tenant.name,
  description: tenant.description,
  metadata: tenant.metadata,
  ingest_rate_limit: limitOf(tenant),
});

const showTenant = (tenant: TenantRecord): Shown<typeof TenantSchema> => ({
  id: tenant.id,
  ...settingsOf(tenant),
  created_at: tenant.created_at,
  updated_at: tenant.updated_at,
});
