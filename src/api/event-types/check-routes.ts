import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import type { EventCatalogue } from '../../catalogue/event-catalogue.ts';
import { type Conversions, describeBusy } from '../../convert/index.ts';
import { latestVersion } from '../../domain/event-type-version.ts';
import { firstIdAt, idPrefixes, publicId, timeOfId, type Uuid } from '../../domain/ids.ts';
import { invalidField } from '../../domain/problem.ts';
import { ENVELOPE_BYTES, readTime } from '../../ingest/index.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { eventTypeNotFound } from '../../manage/event-types.ts';
import type { Pool } from '../../postgres/database.ts';
import { findCatalogueType } from '../../postgres/queries/event-type-versions.ts';
import { findEventType } from '../../postgres/queries/event-types.ts';
import { listSchemaFailures, type SchemaFailureRecord } from '../../postgres/queries/schema-failures.ts';
import type { PublishLimits } from '../dependencies.ts';
import { earlierBound } from '../http/id-filters.ts';
import { badCursor, DEFAULT_LIMIT } from '../http/pagination.ts';
import type { Shown } from '../openapi/describe.ts';
import {
  EventTypeTried,
  EventTypeTry,
  SchemaFailureList,
  SchemaFailurePage,
  type SchemaFailureSchema,
} from './check-schema.ts';
import { EventTypeName } from './schema.ts';

const tags = ['Event types'] as const;
type ByName = { Params: Static<typeof EventTypeName> };

export function schemaCheckRoutes(
  pool: Pool,
  limits: PublishLimits,
  conversions: Pick<Conversions, 'tryConversion'>,
  catalogue: Pick<EventCatalogue, 'schemaOf'>,
): FastifyPluginAsync {
  return async (server) => {
    server.get<ByName & { Querystring: Static<typeof SchemaFailureList> }>(
      '/event-types/:name/failures',
      {
        schema: {
          operationId: 'listSchemaFailures',
          summary: 'List recent payloads that did not match the catalogue, newest first',
          description:
            'The list is a sample: each process records up to 5 of a tenant and type in 5 seconds. They are kept for 7 days, up to 1,000 of a tenant and type. It also lists types that the catalogue does not have.',
          tags,
          params: EventTypeName,
          querystring: SchemaFailureList,
          response: { 200: SchemaFailurePage },
        },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor } = request.query;
        const since = readTime('since', request.query.since);
        const until = readTime('until', request.query.until);
        const rows = await listSchemaFailures(pool, {
          tenant: visibleTenant(request.caller, request.query.tenant),
          eventType: request.params.name,
          from: since === null ? null : firstIdAt(since),
          before: earlierBound(readCursor(cursor), until === null ? null : firstIdAt(until)),
          limit: limit + 1,
        });
        const { name } = request.params;
        const isFiltered = since !== null || until !== null;
        if (rows.length === 0 && !isFiltered && (await findEventType(pool, name)) === null)
          throw eventTypeNotFound(name);
        const shown = rows.slice(0, limit);
        const hasMore = rows.length > limit;
        return {
          data: shown.map(showFailure),
          next_cursor: hasMore ? shown.at(-1)!.id.replaceAll('-', '') : null,
        };
      },
    );

    server.post<ByName & { Body: Static<typeof EventTypeTry> }>(
      '/event-types/:name/try',
      {
        schema: {
          operationId: 'tryEventType',
          summary: 'Check a payload that is neither stored nor sent',
          tags,
          params: EventTypeName,
          body: EventTypeTry,
          response: { 200: EventTypeTried },
        },
        config: { reads: true },
        bodyLimit: limits.maxEventBytes + ENVELOPE_BYTES,
      },
      async (request) => {
        const { name } = request.params;
        const { data, from_version: wanted = null } = request.body;
        const { to_version: target = null } = request.body;
        // From the store: another process may have created the version a moment ago.
        const type = await findCatalogueType(pool, name);
        if (type === null) throw eventTypeNotFound(name);
        const named = (version: string) => type.versions.find((each) => each.version === version) ?? null;
        const found = wanted === null ? latestVersion(type.versions) : named(wanted);
        if (wanted !== null && found === null)
          throw invalidField('from_version', `is not a version of ${name}`);
        if (target !== null && named(target) === null)
          throw invalidField('to_version', `is not a version of ${name}`);
        const schema = await catalogue.schemaOf(type, found);
        const errors = schema?.check(data) ?? [];
        const version = found?.version ?? null;
        const tenant = request.caller.tenant ?? '';
        const trial = { tenant, type: name, from: version, to: target, data };
        return { valid: errors.length === 0, version, errors, ...(await tryConversion(conversions, trial)) };
      },
    );
  };
}

interface Trial {
  readonly tenant: string;
  readonly type: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly data: unknown;
}

/** Converts the payload to `to`. Null: it is not wanted. */
async function tryConversion(
  conversions: Pick<Conversions, 'tryConversion'>,
  { from, to, data, ...trial }: Trial,
): Promise<Pick<Shown<typeof EventTypeTried>, 'converted' | 'conversion_error'>> {
  if (to === null) return { converted: null, conversion_error: null };
  if (from === to) return { converted: data, conversion_error: null };
  const answer =
    from === null
      ? ({ kind: 'no_converter' } as const)
      : await conversions.tryConversion({ ...trial, from, to, data: Buffer.from(JSON.stringify(data)) });
  switch (answer.kind) {
    case 'converted':
      return { converted: JSON.parse(answer.data.toString()) as unknown, conversion_error: null };
    case 'failed':
      return { converted: null, conversion_error: answer.message };
    case 'busy':
      return { converted: null, conversion_error: describeBusy(answer) };
    case 'no_converter':
      return {
        converted: null,
        conversion_error: `No converters lead from ${from ?? 'no version'} to ${to}: the event would be sent as it is.`,
      };
  }
}

const showFailure = (failure: SchemaFailureRecord): Shown<typeof SchemaFailureSchema> => ({
  created_at: new Date(timeOfId(failure.id)),
  tenant: failure.tenant,
  event_type: failure.event_type,
  version: failure.version,
  result: failure.event_id === null ? 'refused' : 'flagged',
  event_id: failure.event_id === null ? null : publicId(idPrefixes.event, failure.event_id),
  path: failure.path,
  message: failure.message,
});

/** The id of the last row, without dashes. */
function readCursor(cursor: string | undefined): Uuid | null {
  if (cursor === undefined) return null;
  if (!/^[0-9a-f]{32}$/.test(cursor)) throw badCursor();
  return cursor.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') as Uuid;
}
