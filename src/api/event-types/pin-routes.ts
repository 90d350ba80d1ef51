/** Which endpoints pin which version of an event type: whom to tell before a version ends. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Endpoint } from '../../domain/endpoint.ts';
import { matchesType } from '../../domain/event.ts';
import { versionStatuses } from '../../domain/event-type-version.ts';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { resolvePin, type TypeVersion } from '../../domain/version-pins.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { eventTypeNotFound } from '../../manage/event-types.ts';
import type { EndpointDirectory } from '../../ports/endpoint-directory.ts';
import type { VersionDirectory } from '../../ports/version-directory.ts';
import type { Pool } from '../../postgres/database.ts';
import { listPinnedIds } from '../../postgres/queries/endpoints.ts';
import { findEventType } from '../../postgres/queries/event-types.ts';
import { DEFAULT_LIMIT, PageQuery, readCursor, tenantFilter, toPage } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Page, type Shown, Time } from '../openapi/describe.ts';
import { EventTypeName } from './schema.ts';

/** How many endpoints are read at once. */
const CHUNK = 1_000;

const PinList = Type.Object(
  {
    ...PageQuery,
    tenant: tenantFilter('Selects only endpoints of this tenant.'),
    version: Type.Optional(
      Type.String({ maxLength: 64, description: 'Selects only endpoints that get this version.' }),
    ),
  },
  { additionalProperties: false },
);

const PinSchema = Type.Object(
  {
    endpoint_id: Id('ep'),
    tenant: Type.String(),
    api_version: Type.String({ description: 'The version that the endpoint pins.' }),
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
  endpoints: Pick<EndpointDirectory, 'get'>,
  versions: Pick<VersionDirectory, 'versionsOf'>,
): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: Static<typeof EventTypeName>; Querystring: Static<typeof PinList> }>(
      '/event-types/:name/pins',
      {
        schema: {
          operationId: 'listPins',
          summary: 'List endpoints that pin a version of an event type',
          description: 'Lists endpoints with `api_version` that subscribe to the type, newest first.',
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
        const rows: PinRow[] = [];
        // Chunk by chunk: neither a request of one tenant nor one with few results may hold up the others.
        for (let from = before, isLast = false; !isLast && rows.length <= limit; ) {
          const ids = await listPinnedIds(pool, { tenant, before: from, limit: CHUNK });
          isLast = ids.length < CHUNK;
          from = ids.at(-1) ?? null;
          for (const id of ids) {
            const endpoint = endpoints.get(id);
            if (endpoint === undefined || !isPinned(endpoint, name)) continue;
            const target = resolvePin(known, endpoint.apiVersion!);
            if (version === undefined || target?.name === version) rows.push(showPin(endpoint, target));
          }
        }
        return toPage(rows.slice(0, limit + 1), limit, idPrefixes.endpoint, ({ id: _, ...pin }) => pin);
      },
    );
  };
}

type PinRow = Shown<typeof PinSchema> & { readonly id: string };

const showPin = ({ id, tenant, apiVersion }: Endpoint, target: TypeVersion | null): PinRow => ({
  id,
  endpoint_id: publicId(idPrefixes.endpoint, id),
  tenant,
  api_version: apiVersion!,
  version: target?.name ?? null,
  status: target?.status ?? null,
  sunset_at: target?.sunsetAt == null ? null : new Date(target.sunsetAt),
});

const isPinned = ({ apiVersion, deleted, events }: Endpoint, type: string): boolean =>
  apiVersion !== null && !deleted && events.some((pattern) => matchesType(pattern, type));
