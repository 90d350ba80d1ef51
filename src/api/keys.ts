import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { isTenantId } from '../domain/event.ts';
import { idPrefixes, newId, parsePublicId, publicId } from '../domain/ids.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { inTransaction } from '../store/database.ts';
import { createKey, type KeyRecord, listKeys, revokeKey } from '../store/queries/keys.ts';
import type { Change } from './audit-trail.ts';
import { hashKey, newApiKey, shownPrefix } from './auth.ts';
import type { ApiContext } from './context.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, toPage } from './pagination.ts';

const NewKey = Type.Object(
  {
    scope: Type.Enum(['admin', 'tenant', 'read']),
    tenant: Type.Optional(
      Type.String({ description: 'Required for a tenant key; narrows a read key; not for an admin key.' }),
    ),
    description: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
);
const KeyList = Type.Object(
  { ...PageQuery, tenant: Type.Optional(Type.String()) },
  { additionalProperties: false },
);

export function keyRoutes({ pool, clock, authenticator }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof NewKey> }>(
      '/keys',
      { schema: { body: NewKey }, config: { admin: true } },
      async (request, reply) => {
        const { scope, tenant, description } = request.body;
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
          });
          await request.audit.record(client, changeOf(made));
          return made;
        });
        return reply.code(201).send({ ...showKey(record), key });
      },
    );

    server.get<{ Querystring: Static<typeof KeyList> }>(
      '/keys',
      { schema: { querystring: KeyList }, config: { admin: true } },
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

    server.delete<{ Params: { id: string } }>(
      '/keys/:id',
      { config: { admin: true } },
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

function showKey(key: KeyRecord) {
  return {
    id: publicId(idPrefixes.key, key.id),
    scope: key.scope,
    tenant: key.tenant,
    description: key.description,
    prefix: key.prefix,
    created_at: key.created_at,
    last_used_at: key.last_used_at,
  };
}
