import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { firstIdAt, idPrefixes, publicId, timeOfId, type Uuid } from '../../domain/ids.ts';
import { readTime } from '../../ingest/index.ts';
import { auditActions } from '../../manage/audit-actions.ts';
import { type AuditEntry, listAuditEntries } from '../../postgres/queries/audit-log.ts';
import type { ApiContext } from '../dependencies.ts';
import { tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, tenantFilter, toPage } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Page, type Shown, Time } from '../openapi/describe.ts';

const AuditQuery = Type.Object(
  {
    ...PageQuery,
    tenant: tenantFilter("About this tenant's objects."),
    actor: Type.Optional(Type.String({ maxLength: 64, description: 'The id of a key, or "admin".' })),
    action: Type.Optional(Type.Enum([...auditActions])),
    object_id: Type.Optional(Type.String({ maxLength: 200 })),
    since: Type.Optional(Type.String({ description: 'At or after this RFC 3339 time.' })),
    until: Type.Optional(Type.String({ description: 'Before this RFC 3339 time.' })),
  },
  { additionalProperties: false },
);

const AuditEntrySchema = Type.Object(
  {
    id: Id('aud'),
    created_at: Time,
    action: Type.String(),
    tenant: Nullable(Type.String()),
    actor: Type.Object({ id: Type.String(), prefix: Nullable(Type.String()), scope: Type.String() }),
    object: Type.Object({ type: Type.String(), id: Nullable(Type.String()) }),
    changes: Type.Array(
      Type.Object({
        field: Type.String(),
        before: Type.Optional(Type.Unknown()),
        after: Type.Optional(Type.Unknown()),
      }),
    ),
    request_id: Type.String(),
    address: Type.String({ description: 'Where the request came from.' }),
  },
  {
    title: 'AuditEntry',
    examples: [
      {
        id: exampleId('aud'),
        created_at: EXAMPLE_TIME,
        action: 'endpoint.update',
        tenant: 'acme',
        actor: { id: exampleId('key'), prefix: 'phk_9wLx4f', scope: 'tenant' },
        object: { type: 'endpoint', id: exampleId('ep') },
        changes: [{ field: 'timeout_ms', before: 15_000, after: 5000 }],
        request_id: exampleId('req'),
        address: '192.0.2.1',
      },
    ],
  },
);

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
          response: { 200: Page(AuditEntrySchema) },
        },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant, actor, action, object_id } = request.query;
        const since = readTime('since', request.query.since);
        const until = readTime('until', request.query.until);
        const { rows, resumeAt } = await listAuditEntries(pool, {
          tenant: tenantOf(request.caller, tenant),
          actor: actor ?? null,
          action: action ?? null,
          objectId: object_id ?? null,
          from: since === null ? null : firstIdAt(since),
          before: smaller(readCursor(idPrefixes.audit, cursor), until === null ? null : firstIdAt(until)),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.audit, showEntry, resumeAt);
      },
    );
  };
}

function smaller(a: Uuid | null, b: Uuid | null): Uuid | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}

function showEntry(entry: AuditEntry): Shown<typeof AuditEntrySchema> {
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
