import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { type EventTypeVersions, readVersion, readVersions } from '../../manage/event-type-versions.ts';
import type { Pool } from '../../postgres/database.ts';
import { EventTypeName } from './schema.ts';
import {
  EventTypeVersionBody,
  EventTypeVersionPage,
  EventTypeVersionSchema,
  VersionParams,
} from './version-schema.ts';
import { showVersion } from './view.ts';

const tags = ['Event types'] as const;
type ByVersion = { Params: Static<typeof VersionParams> };

export function eventTypeVersionRoutes(versions: EventTypeVersions, pool: Pool): FastifyPluginAsync {
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

    server.put<ByVersion & { Body: Static<typeof EventTypeVersionBody> }>(
      '/event-types/:name/versions/:version',
      {
        schema: {
          operationId: 'putEventTypeVersion',
          summary: 'Create or replace a version of an event type',
          description: 'Creates the event type if the catalogue does not have it.',
          tags,
          params: VersionParams,
          body: EventTypeVersionBody,
          response: { 200: EventTypeVersionSchema, 201: EventTypeVersionSchema },
          problems: { conflict: 'The event type has too many versions.' },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { name, version } = request.params;
        const stored = await versions.put(request, name, version, request.body);
        return reply.code(stored.created ? 201 : 200).send(showVersion(stored));
      },
    );
  };
}
