import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { firstIdAt, idPrefixes } from '../../domain/ids.ts';
import { readTime } from '../../ingest/index.ts';
import { type Caller, OPERATOR, visibleTenant } from '../../manage/caller.ts';
import type { Pool } from '../../postgres/database.ts';
import { type AuditEntry, type AuditFilter, listAuditEntries } from '../../postgres/queries/audit-log.ts';
import { earlierBound } from '../http/id-filters.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Page } from '../openapi/describe.ts';
import { AuditEntrySchema, AuditQuery } from './schema.ts';
import { showAuditEntry } from './view.ts';

export function auditRoutes(pool: Pool): FastifyPluginAsync {
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
          tenant: visibleTenant(request.caller, tenant),
          ...actorFilter(request.caller, actor),
          action: action ?? null,
          objectId: object_id ?? null,
          from: since === null ? null : firstIdAt(since),
          before: earlierBound(
            readCursor(idPrefixes.audit, cursor),
            until === null ? null : firstIdAt(until),
          ),
          limit: limit + 1,
        });
        const show = (entry: AuditEntry) => showAuditEntry(entry, request.caller);
        return toPage(rows, limit, idPrefixes.audit, show, resumeAt);
      },
    );
  };
}

/** A tenant finds all changes of the operator by one name, and none by the name of a person or key of the operator. */
function actorFilter(caller: Caller, actor: string | undefined): Pick<AuditFilter, 'actor' | 'byOperator'> {
  if (actor === undefined) return { actor: null, byOperator: null };
  if (caller.tenant === null) return { actor, byOperator: null };
  return actor === OPERATOR ? { actor: null, byOperator: true } : { actor, byOperator: false };
}
