import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { firstIdAt, idPrefixes, publicId, timeOfId, type Uuid } from '../domain/ids.ts';
import { readTime } from '../ingest/index.ts';
import { type AuditEntry, listAuditEntries } from '../store/queries/audit-log.ts';
import { tenantOf } from './auth.ts';
import type { ApiContext } from './context.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, toPage } from './pagination.ts';

const AuditQuery = Type.Object(
  {
    ...PageQuery,
    tenant: Type.Optional(Type.String({ maxLength: 128 })),
    actor: Type.Optional(Type.String({ maxLength: 64, description: 'The id of a key, or "admin".' })),
    action: Type.Optional(Type.String({ maxLength: 64, description: 'Such as endpoint.update.' })),
    object_id: Type.Optional(Type.String({ maxLength: 200 })),
    since: Type.Optional(Type.String({ description: 'At or after this RFC 3339 time.' })),
    until: Type.Optional(Type.String({ description: 'Before this RFC 3339 time.' })),
  },
  { additionalProperties: false },
);

const AuditEntryAnswer = Type.Object({
  id: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  action: Type.String(),
  tenant: Type.Union([Type.String(), Type.Null()]),
  actor: Type.Object({
    id: Type.String(),
    prefix: Type.Union([Type.String(), Type.Null()]),
    scope: Type.String(),
  }),
  object: Type.Object({ type: Type.String(), id: Type.Union([Type.String(), Type.Null()]) }),
  changes: Type.Array(
    Type.Object({
      field: Type.String(),
      before: Type.Optional(Type.Unknown()),
      after: Type.Optional(Type.Unknown()),
    }),
  ),
  request_id: Type.String(),
  address: Type.String(),
});

export function auditRoutes({ pool }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof AuditQuery> }>(
      '/audit',
      {
        schema: {
          operationId: 'listAuditEntries',
          summary: 'Who changed what, newest first',
          tags: ['Audit'],
          querystring: AuditQuery,
          response: {
            200: Type.Object({
              data: Type.Array(AuditEntryAnswer),
              next_cursor: Type.Union([Type.String(), Type.Null()]),
            }),
          },
        },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant, actor, action, object_id } = request.query;
        const since = readTime('since', request.query.since);
        const until = readTime('until', request.query.until);
        const rows = await listAuditEntries(pool, {
          tenant: tenantOf(request.caller, tenant),
          actor: actor ?? null,
          action: action ?? null,
          objectId: object_id ?? null,
          from: since === null ? null : firstIdAt(since),
          before: smaller(readCursor(idPrefixes.audit, cursor), until === null ? null : firstIdAt(until)),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.audit, showEntry);
      },
    );
  };
}

function smaller(a: Uuid | null, b: Uuid | null): Uuid | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

function showEntry(entry: AuditEntry) {
  return {
    id: publicId(idPrefixes.audit, entry.id),
    created_at: new Date(timeOfId(entry.id)),
    action: entry.action,
    tenant: entry.tenant,
    actor: { id: entry.actor, prefix: entry.actor_name, scope: entry.scope },
    object: { type: entry.object_type, id: entry.object_id },
    changes: entry.changes,
    request_id: entry.request_id,
    address: entry.address,
  };
}
