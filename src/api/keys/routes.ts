import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { isTenantId } from '../../domain/event.ts';
import { idPrefixes, newId, parsePublicId, publicId } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import type { Change } from '../../manage/audit-trail.ts';
import { inTransaction } from '../../postgres/database.ts';
import { createKey, type KeyRecord, listKeys, revokeKey } from '../../postgres/queries/keys.ts';
import type { ApiContext } from '../dependencies.ts';
import { hashKey, keyIn, newApiKey, shownPrefix } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage } from '../http/pagination.ts';
import { burstOf, RateLimitSchema } from '../http/rate-limit.ts';
import { Nullable } from '../http/validation.ts';
import {
  EXAMPLE_TIME,
  exampleId,
  Id,
  idParams,
  Nothing,
  Page,
  type Shown,
  Time,
} from '../openapi/describe.ts';

const scopes = ['admin', 'tenant', 'read'] as const;
const keyFields = {
  id: Id('key'),
  scope: Type.Enum([...scopes]),
  tenant: Nullable(Type.String({ description: 'The only tenant that it may see.' })),
  description: Type.String(),
  prefix: Type.String({ description: 'How the key begins, to recognize it by.' }),
  created_at: Time,
  last_used_at: Nullable(Time),
  rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
};
const exampleKey = {
  id: exampleId('key'),
  scope: 'tenant',
  tenant: 'acme',
  description: 'checkout service',
  prefix: 'phk_9wLx4f',
  created_at: EXAMPLE_TIME,
  last_used_at: null,
  rate_limit: null,
};
const KeySchema = Type.Object(keyFields, { title: 'Key', examples: [exampleKey] });
const CreatedKey = Type.Object(
  { ...keyFields, key: Type.String({ description: 'The key itself. It is shown here and never again.' }) },
  {
    title: 'CreatedKey',
    examples: [{ ...exampleKey, key: 'phk_9wLx4f…' }],
  },
);
const KeyId = idParams('key', 'key');

const NewKey = Type.Object(
  {
    scope: Type.Enum([...scopes]),
    tenant: Type.Optional(
      Type.String({ description: 'Required for a tenant key; narrows a read key; not for an admin key.' }),
    ),
    description: Type.Optional(Type.String({ maxLength: 200 })),
    rate_limit: Type.Optional(Nullable(RateLimitSchema)),
  },
  {
    additionalProperties: false,
    title: 'NewKey',
    examples: [{ scope: 'tenant', tenant: 'acme', description: 'checkout service' }],
  },
);
const KeyList = Type.Object({ ...PageQuery, tenant: ListFilters.tenant }, { additionalProperties: false });

const CurrentKey = Type.Object(
  {
    id: Nullable(Id('key', 'Null: the first admin key, which is in the configuration.')),
    scope: keyFields.scope,
    tenant: keyFields.tenant,
    prefix: keyFields.prefix,
    capabilities: Type.Object({ inbox: Type.Boolean({ description: 'There is a built-in receiver.' }) }),
  },
  {
    title: 'CurrentKey',
    examples: [
      {
        id: exampleId('key'),
        scope: 'tenant',
        tenant: 'acme',
        prefix: 'phk_9wLx4f',
        capabilities: { inbox: true },
      },
    ],
  },
);

export function keyRoutes({ pool, clock, authenticator, inboxes }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof NewKey> }>(
      '/keys',
      {
        schema: {
          operationId: 'createKey',
          summary: 'Make an API key',
          tags: ['Keys'],
          body: NewKey,
          response: { 201: CreatedKey },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { scope, tenant, description, rate_limit: limit } = request.body;
        if (scope === 'tenant' && tenant === undefined)
          throw invalidField('tenant', 'is required for a tenant key');
        if (scope === 'admin' && tenant !== undefined)
          throw invalidField('tenant', 'an admin key is for all tenants');
        if (tenant !== undefined && !isTenantId(tenant))
          throw invalidField('tenant', 'is not a valid tenant id');
        const key = newApiKey();
        const record = await inTransaction(pool, async (client) => {
          const made = await createKey(client, {
            id: newId(clock.now()),
            scope,
            tenant: tenant ?? null,
            description: description ?? '',
            prefix: shownPrefix(key),
            hash: hashKey(key),
            rate_per_second: limit?.per_second ?? null,
            rate_burst: limit == null ? null : burstOf(limit),
          });
          await request.audit.record(client, changeOf(made));
          return made;
        });
        return reply.code(201).send({ ...showKey(record), key });
      },
    );

    server.get<{ Querystring: Static<typeof KeyList> }>(
      '/keys',
      {
        schema: {
          operationId: 'listKeys',
          summary: 'List API keys',
          tags: ['Keys'],
          querystring: KeyList,
          response: { 200: Page(KeySchema) },
        },
        config: { admin: true },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant } = request.query;
        const rows = await listKeys(pool, {
          tenant: tenant ?? null,
          before: readCursor(idPrefixes.key, cursor),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.key, showKey);
      },
    );

    server.get(
      '/keys/current',
      {
        schema: {
          operationId: 'getCurrentKey',
          summary: 'What the key of this request may do',
          tags: ['Keys'],
          response: { 200: CurrentKey },
        },
      },
      async ({ caller, headers }) => ({
        id: caller.keyId && publicId(idPrefixes.key, caller.keyId),
        scope: caller.scope,
        tenant: caller.tenant,
        prefix: shownPrefix(keyIn(headers.authorization)),
        capabilities: { inbox: inboxes !== null },
      }),
    );

    server.delete<{ Params: Static<typeof KeyId> }>(
      '/keys/:id',
      {
        schema: {
          operationId: 'revokeKey',
          summary: 'Revoke an API key',
          description: 'It stops working at once, in every process.',
          tags: ['Keys'],
          params: KeyId,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const id = parsePublicId(idPrefixes.key, request.params.id);
        await inTransaction(pool, async (client) => {
          const revoked = id === null ? null : await revokeKey(client, id);
          if (revoked === null) throw new Problem('not_found', `There is no key ${request.params.id}.`);
          await request.audit.record(client, changeOf(revoked));
        });
        // The others are told by the database; here it must not work a moment longer than the answer says.
        authenticator.forget();
        return reply.code(204).send();
      },
    );
  };
}

const changeOf = ({ id, tenant, scope, prefix, description }: KeyRecord): Change => ({
  tenant,
  objectId: publicId(idPrefixes.key, id),
  changes: [
    { field: 'prefix', after: prefix },
    { field: 'scope', after: scope },
    { field: 'description', after: description },
  ],
});

function showKey(key: KeyRecord): Shown<typeof KeySchema> {
  return {
    id: publicId(idPrefixes.key, key.id),
    scope: key.scope,
    tenant: key.tenant,
    description: key.description,
    prefix: key.prefix,
    created_at: key.created_at,
    last_used_at: key.last_used_at,
    rate_limit:
      key.rate_per_second === null || key.rate_burst === null
        ? null
        : { per_second: key.rate_per_second, burst: key.rate_burst },
  };
}
