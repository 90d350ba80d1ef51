import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { type EventTypes, eventTypeNotFound } from '../../manage/event-types.ts';
import type { Pool } from '../../postgres/database.ts';
import { findEventType, listEventTypes } from '../../postgres/queries/event-types.ts';
import { readNamedCursor, toNamedPage } from '../http/named-pages.ts';
import { DEFAULT_LIMIT } from '../http/pagination.ts';
import { CATALOGUE_BODY_BYTES } from '../http/v1.ts';
import { Nothing, Page } from '../openapi/describe.ts';
import { EventTypeBody, EventTypeList, EventTypeName, EventTypeSchema } from './schema.ts';
import { showEventType } from './view.ts';

const tags = ['Event types'] as const;
type ByName = { Params: { name: string } };

export function eventTypeRoutes(eventTypes: EventTypes, pool: Pool): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof EventTypeList> }>(
      '/event-types',
      {
        schema: {
          operationId: 'listEventTypes',
          summary: 'List the catalogue, newest first',
          tags,
          querystring: EventTypeList,
          response: { 200: Page(EventTypeSchema) },
        },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor } = request.query;
        const rows = await listEventTypes(pool, { before: readNamedCursor(cursor), limit: limit + 1 });
        return toNamedPage(rows, limit, ({ name }) => name, showEventType);
      },
    );

    server.get<ByName>(
      '/event-types/:name',
      {
        schema: {
          operationId: 'getEventType',
          summary: 'Show an event type',
          tags,
          params: EventTypeName,
          response: { 200: EventTypeSchema },
        },
      },
      async (request) => {
        const found = await findEventType(pool, request.params.name);
        if (found === null) throw eventTypeNotFound(request.params.name);
        return showEventType(found);
      },
    );

    server.put<ByName & { Body: Static<typeof EventTypeBody> }>(
      '/event-types/:name',
      {
        bodyLimit: CATALOGUE_BODY_BYTES,
        schema: {
          operationId: 'putEventType',
          summary: 'Create or replace an event type',
          tags,
          params: EventTypeName,
          body: EventTypeBody,
          response: { 200: EventTypeSchema, 201: EventTypeSchema },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { created, type } = await eventTypes.put(request, request.params.name, request.body);
        return reply.code(created ? 201 : 200).send(showEventType(type));
      },
    );

    server.delete<ByName>(
      '/event-types/:name',
      {
        schema: {
          operationId: 'deleteEventType',
          summary: 'Delete an event type from the catalogue',
          tags,
          params: EventTypeName,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        await eventTypes.delete(request, request.params.name);
        return reply.code(204).send();
      },
    );
  };
}
