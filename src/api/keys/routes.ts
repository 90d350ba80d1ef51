import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { prefixOfApiKey } from '../../manage/api-keys.ts';
import type { Keys } from '../../manage/keys.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import type { Pool } from '../../postgres/database.ts';
import { listKeys, readKey } from '../../postgres/queries/keys.ts';
import { bearerToken } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Nothing, Page } from '../openapi/describe.ts';
import { CreatedKey, CurrentKey, KeyId, KeyList, KeyPatch, KeySchema, NewKey } from './schema.ts';
import { showKey } from './view.ts';

export function keyRoutes(
  keys: Keys,
  pool: Pool,
  { hasInbox }: { readonly hasInbox: boolean },
): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof NewKey> }>(
      '/keys',
      {
        schema: {
          operationId: 'createKey',
          summary: 'Create an API key',
          tags: ['Keys'],
          body: NewKey,
          response: { 201: CreatedKey },
          problems: { conflict: 'The data of the tenant is being deleted.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { record, key } = await keys.create(request, request.body);
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
        scopes: caller.scopes && [...caller.scopes],
        tenant: caller.tenant,
        prefix: caller.user === undefined ? prefixOfApiKey(bearerToken(headers.authorization)) : '',
        user: caller.user === undefined ? null : caller.prefix,
        capabilities: { inbox: hasInbox },
      }),
    );

    server.get<{ Params: Static<typeof KeyId> }>(
      '/keys/:id',
      {
        schema: {
          operationId: 'getKey',
          summary: 'Show an API key',
          tags: ['Keys'],
          params: KeyId,
          response: { 200: KeySchema },
        },
        config: { admin: true },
      },
      async (request) => {
        const id = readObjectId('key', request.params.id);
        const key = await readKey(pool, id);
        if (key === null) throw notFound('key', id);
        return showKey(key);
      },
    );

    server.patch<{ Params: Static<typeof KeyId>; Body: Static<typeof KeyPatch> }>(
      '/keys/:id',
      {
        schema: {
          operationId: 'updateKey',
          summary: 'Change what an API key may do',
          description:
            'A JSON merge patch: an absent field stays as it is, `null` lifts the restriction. It applies at once, in every process.',
          tags: ['Keys'],
          params: KeyId,
          body: KeyPatch,
          response: { 200: KeySchema },
        },
        config: { admin: true },
      },
      async (request) =>
        showKey(await keys.update(request, readObjectId('key', request.params.id), request.body, showKey)),
    );

    server.delete<{ Params: Static<typeof KeyId> }>(
      '/keys/:id',
      {
        schema: {
          operationId: 'revokeKey',
          summary: 'Revoke an API key',
          description: 'The key stops working at once, in every process.',
          tags: ['Keys'],
          params: KeyId,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        await keys.revoke(request, readObjectId('key', request.params.id));
        return reply.code(204).send();
      },
    );
  };
}
