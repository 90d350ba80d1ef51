import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import {
  checkVersion,
  diffVersions,
  type EventTypeVersions,
  readVersion,
  readVersions,
} from '../../manage/event-type-versions.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { CATALOGUE_BODY_BYTES } from '../http/v1.ts';
import { EventTypeName } from './schema.ts';
import { TOO_MANY_COMPARISONS, takeSchemaTurn } from './schema-turns.ts';
import {
  EventTypeVersionBody,
  EventTypeVersionChecked,
  EventTypeVersionPage,
  EventTypeVersionSchema,
  EventTypeVersionStored,
  VersionDiff,
  VersionDiffParams,
  VersionParams,
} from './version-schema.ts';
import { showVersion } from './view.ts';

const tags = ['Event types'] as const;
type ByVersion = { Params: Static<typeof VersionParams> };

export function eventTypeVersionRoutes(
  versions: EventTypeVersions,
  { pool, clock }: Pick<ApiDependencies, 'pool' | 'clock'>,
): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: Static<typeof EventTypeName> }>(
      '/event-types/:name/versions',
      {
        schema: {
          operationId: 'listEventTypeVersions',
          summary: 'List the versions of an event type, newest first',
          tags,
          params: EventTypeName,
          response: { 200: EventTypeVersionPage },
        },
      },
      async (request) => {
        const found = await readVersions(pool, request.params.name);
        return {
          data: found.toReversed().map(showVersion),
          latest: found.find(({ isLatest }) => isLatest)?.version.version ?? null,
          next_cursor: null,
        };
      },
    );

    server.get<ByVersion>(
      '/event-types/:name/versions/:version',
      {
        schema: {
          operationId: 'getEventTypeVersion',
          summary: 'Get a version of an event type',
          tags,
          params: VersionParams,
          response: { 200: EventTypeVersionSchema },
        },
      },
      async (request) => {
        const { name, version } = request.params;
        return showVersion(await readVersion(pool, name, version));
      },
    );

    server.get<{ Params: Static<typeof VersionDiffParams> }>(
      '/event-types/:name/versions/:version/diff/:other',
      {
        schema: {
          operationId: 'diffEventTypeVersions',
          summary: 'Compare the schemas of two versions, as a receiver of the first one sees it',
          description:
            '`additive`: a receiver that was written against the first version can read every payload of the second. Fields that it does not know do not count. What cannot be decided is `breaking`.',
          tags,
          params: VersionDiffParams,
          response: { 200: VersionDiff },
          problems: { rate_limited: TOO_MANY_COMPARISONS },
        },
      },
      async (request) => {
        const { name, version, other } = request.params;
        return takeSchemaTurn(clock, request.caller.tenant, () => diffVersions(pool, name, version, other));
      },
    );

    server.post<ByVersion & { Body: Static<typeof EventTypeVersionBody> }>(
      '/event-types/:name/versions/:version/check',
      {
        bodyLimit: CATALOGUE_BODY_BYTES,
        schema: {
          operationId: 'checkEventTypeVersion',
          summary: 'Compare a version with the one before, without storing it',
          description:
            'Takes the body of `PUT` and answers what `PUT` would: 422 for an invalid schema or example, otherwise the comparison, and why the change would be refused.',
          tags,
          params: VersionParams,
          body: EventTypeVersionBody,
          response: { 200: EventTypeVersionChecked },
          problems: { rate_limited: TOO_MANY_COMPARISONS },
        },
        config: { reads: true },
      },
      async (request) => {
        const { name, version } = request.params;
        const check = () => checkVersion(pool, name, version, request.body);
        return takeSchemaTurn(clock, request.caller.tenant, check);
      },
    );

    server.put<ByVersion & { Body: Static<typeof EventTypeVersionBody> }>(
      '/event-types/:name/versions/:version',
      {
        bodyLimit: CATALOGUE_BODY_BYTES,
        schema: {
          operationId: 'putEventTypeVersion',
          summary: 'Create or replace a version of an event type',
          description: 'Creates the event type if the catalogue does not have it.',
          tags,
          params: VersionParams,
          body: EventTypeVersionBody,
          response: { 200: EventTypeVersionStored, 201: EventTypeVersionStored },
          problems: {
            conflict: 'The new schema breaks receivers of this version, or the type has too many versions.',
          },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { name, version } = request.params;
        const stored = await versions.put(request, name, version, request.body);
        const { created, compatibility } = stored;
        return reply.code(created ? 201 : 200).send({ ...showVersion(stored), compatibility });
      },
    );
  };
}
