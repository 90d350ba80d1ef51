/** `/v1/portal-sessions`: short-lived access to the console for the people of one tenant. */
import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import type { PortalSessions } from '../../manage/portal-sessions.ts';
import { listPortalSessions, type PortalSessionRecord } from '../../postgres/queries/portal-sessions.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { DEFAULT_LIMIT, readCursor, toPage } from '../http/pagination.ts';
import { Nothing, Page, type Shown } from '../openapi/describe.ts';
import {
  CreatedPortalSession,
  NewPortalSession,
  PortalSessionId,
  PortalSessionList,
  PortalSessionSchema,
} from './schema.ts';

export function portalSessionRoutes(
  sessions: PortalSessions,
  dependencies: Pick<ApiDependencies, 'pool' | 'publicUrl'>,
): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof NewPortalSession> }>(
      '/portal-sessions',
      {
        schema: {
          operationId: 'createPortalSession',
          summary: 'Create a portal session',
          description:
            'Gives the people of one tenant the console for a short time, without an API key. Create a session when a person opens the portal, and lead the browser to `url`.',
          tags: ['Keys'],
          body: NewPortalSession,
          response: { 201: CreatedPortalSession },
          problems: { conflict: 'The data of the tenant is being deleted.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { record, token } = await sessions.create(request, request.body);
        const url = portalUrl(dependencies.publicUrl, token, request.body.appearance);
        return reply.code(201).send({ ...showPortalSession(record), url, token });
      },
    );

    server.get<{ Querystring: Static<typeof PortalSessionList> }>(
      '/portal-sessions',
      {
        schema: {
          operationId: 'listPortalSessions',
          summary: 'List portal sessions',
          description: 'Lists the portal sessions that have not ended.',
          tags: ['Keys'],
          querystring: PortalSessionList,
          response: { 200: Page(PortalSessionSchema) },
        },
        config: { admin: true },
      },
      async ({ query }) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant } = query;
        const rows = await listPortalSessions(dependencies.pool, {
          tenant: tenant ?? null,
          before: readCursor(idPrefixes.key, cursor),
          limit: limit + 1,
        });
        return toPage(rows, limit, idPrefixes.key, showPortalSession);
      },
    );

    server.delete<{ Params: Static<typeof PortalSessionId> }>(
      '/portal-sessions/:id',
      {
        schema: {
          operationId: 'endPortalSession',
          summary: 'End a portal session',
          description: 'Its token stops working at once, in every process.',
          tags: ['Keys'],
          params: PortalSessionId,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        await sessions.end(request, readObjectId('portal session', request.params.id));
        return reply.code(204).send();
      },
    );
  };
}

const showPortalSession = ({
  id,
  scopes,
  ...session
}: PortalSessionRecord): Shown<typeof PortalSessionSchema> => ({
  ...session,
  id: publicId(idPrefixes.key, id),
  capabilities: scopes,
});

/** The console reads what is behind `#`, and removes it from the address. Browsers do not send it to servers. */
function portalUrl(
  publicUrl: string,
  token: string,
  appearance: Static<typeof NewPortalSession>['appearance'] = {},
): string {
  return `${publicUrl.replace(/\/$/, '')}/console#${new URLSearchParams({ portal: token, ...appearance })}`;
}
