/** Which endpoints pin which version of an event type: whom to tell before a version ends. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Endpoint } from '../../domain/endpoint.ts';
import { matchesType } from '../../domain/event.ts';
import { versionStatuses } from '../../domain/event-type-version.ts';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { resolvePin } from '../../domain/version-pins.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { eventTypeNotFound } from '../../manage/event-types.ts';
import type { EndpointDirectory } from '../../ports/endpoint-directory.ts';
import type { VersionDirectory } from '../../ports/version-directory.ts';
import type { Pool } from '../../postgres/database.ts';
import { findEventType } from '../../postgres/queries/event-types.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, tenantFilter, toPage } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Page, type Shown, Time } from '../openapi/describe.ts';
import { EventTypeName } from './schema.ts';

const PinList = Type.Object(
  {
    ...PageQuery,
    tenant: tenantFilter('Only endpoints of this tenant.'),
    version: Type.Optional(
      Type.String({ maxLength: 64, description: 'Only endpoints that get this version.' }),
    ),
  },
  { additionalProperties: false },
);

const PinSchema = Type.Object(
  {
    endpoint_id: Id('ep'),
    tenant: Type.String(),
    api_version: Type.String({ description: 'What the endpoint pins.' }),
    version: Nullable(
      Type.String({ description: 'The version of this type that it stands for. Null: none fits.' }),
    ),
    status: Nullable(Type.Enum([...versionStatuses])),
    sunset_at: Nullable(Time),
  },
  {
    title: 'Pin',
    examples: [
      {
        endpoint_id: exampleId('ep'),
        tenant: 'acme',
        api_version: '2026-01-01',
        version: '2025-10-01',
        status: 'deprecated',
        sunset_at: EXAMPLE_TIME,
      },
    ],
  },
);

export function pinRoutes(
  pool: Pool,
  endpoints: Pick<EndpointDirectory, 'all'>,
  versions: Pick<VersionDirectory, 'versionsOf'>,
): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: Static<typeof EventTypeName>; Querystring: Static<typeof PinList> }>(
      '/event-types/:name/pins',
      {
        schema: {
          operationId: 'listPins',
          summary: 'List endpoints that pin a version of an event type',
          description: 'Endpoints with `api_version` that subscribe to the type, newest first.',
          tags: ['Event types'],
          params: EventTypeName,
          querystring: PinList,
          response: { 200: Page(PinSchema) },
        },
      },
      async (request) => {
        const { name } = request.params;
        const { limit = DEFAULT_LIMIT, cursor, version } = request.query;
        const tenant = visibleTenant(request.caller, request.query.tenant);
        const before = readCursor(idPrefixes.endpoint, cursor);
        if ((await findEventType(pool, name)) === null) throw eventTypeNotFound(name);
        const known = versions.versionsOf(name);
        const rows: (Shown<typeof PinSchema> & { id: string })[] = [];
        for (const endpoint of endpoints.all()) {
          if (!isPinned(endpoint, name) || (tenant !== null && endpoint.tenant !== tenant)) continue;
          if (before !== null && endpoint.id >= before) continue;
          const target = resolvePin(known, endpoint.apiVersion!);
          if (version !== undefined && target?.name !== version) continue;
          rows.push({
            id: endpoint.id,
            endpoint_id: publicId(idPrefixes.endpoint, endpoint.id),
            tenant: endpoint.tenant,
            api_version: endpoint.apiVersion!,
            version: target?.name ?? null,
            status: target?.status ?? null,
            sunset_at: target?.sunsetAt == null ? null : new Date(target.sunsetAt),
          });
        }
        rows.sort((one, other) => (one.id < other.id ? 1 : -1));
        return toPage(rows.slice(0, limit + 1), limit, idPrefixes.endpoint, ({ id: _, ...pin }) => pin);
      },
    );
  };
}

const isPinned = ({ apiVersion, deleted, events }: Endpoint, type: string): boolean =>
  apiVersion !== null && !deleted && events.some((pattern) => matchesType(pattern, type));
