/** The catalogue: what types of events there are, for people to read. Publishing does not look at it. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { isEventType, RESERVED_TYPE_PREFIX } from '../../domain/event.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { fieldChanges } from '../../manage/audit-trail.ts';
import { checkAgainst, checkSchema, checkSize } from '../../manage/json-schema.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  deleteEventType,
  type EventTypeRecord,
  type EventTypeSettings,
  findEventType,
  listEventTypes,
  lockEventType,
  putEventType,
} from '../../postgres/queries/event-types.ts';
import type { ApiContext } from '../dependencies.ts';
import { readNamedCursor, toNamedPage } from '../http/named-pages.ts';
import { DEFAULT_LIMIT, PageQuery } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, Nothing, Page, type Shown, Time } from '../openapi/describe.ts';

const SchemaField = Nullable(
  Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Boolean()], {
    description: 'A JSON Schema (draft 2020-12, or draft-07 if `$schema` says so) of the events’ `data`.',
  }),
);

const exampleSettings = {
  description: 'An order was placed.',
  schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  example: { id: 'ord_1' },
  deprecated: false,
};

const EventTypeBody = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 5000 })),
    schema: Type.Optional(SchemaField),
    example: Type.Optional(Type.Unknown({ description: 'A sample of `data`. It must fit the schema.' })),
    deprecated: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false, title: 'EventTypeSettings', examples: [exampleSettings] },
);

const EventTypeSchema = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    schema: SchemaField,
    example: Type.Unknown(),
    deprecated: Type.Boolean(),
    created_at: Time,
    updated_at: Time,
  },
  {
    title: 'EventType',
    examples: [
      { name: 'order.created', ...exampleSettings, created_at: EXAMPLE_TIME, updated_at: EXAMPLE_TIME },
    ],
  },
);
const ByName = Type.Object({ name: Type.String({ description: 'Such as order.created.' }) });
const List = Type.Object(PageQuery, { additionalProperties: false });
type ByName = { Params: { name: string } };

const tags = ['Event types'] as const;

export function eventTypeRoutes({ pool }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Querystring: Static<typeof List> }>(
      '/event-types',
      {
        schema: {
          operationId: 'listEventTypes',
          summary: 'List the catalogue, newest first',
          tags,
          querystring: List,
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
          summary: 'Get an event type',
          tags,
          params: ByName,
          response: { 200: EventTypeSchema },
        },
      },
      async (request) => {
        const found = await findEventType(pool, request.params.name);
        if (found === null) throw typeNotFound(request.params.name);
        return showEventType(found);
      },
    );

    server.put<ByName & { Body: Static<typeof EventTypeBody> }>(
      '/event-types/:name',
      {
        schema: {
          operationId: 'putEventType',
          summary: 'Create or replace an event type',
          tags,
          params: ByName,
          body: EventTypeBody,
          response: { 200: EventTypeSchema, 201: EventTypeSchema },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const after = toSettings(request.params.name, request.body);
        const { created, type } = await inTransaction(pool, async (client) => {
          const before = await lockEventType(client, after.name);
          const changes = fieldChanges(
            before === null ? {} : settingsOf(before),
            settingsOf(after),
            (field) => field !== 'example',
          );
          if (before !== null && changes.length === 0) {
            request.audit.nothingChanged();
            return { created: false, type: before };
          }
          await request.audit.record(client, {
            action: before === null ? 'event_type.create' : 'event_type.update',
            tenant: null,
            objectId: after.name,
            changes,
          });
          return { created: before === null, type: await putEventType(client, after) };
        });
        return reply.code(created ? 201 : 200).send(showEventType(type));
      },
    );

    server.delete<ByName>(
      '/event-types/:name',
      {
        schema: {
          operationId: 'deleteEventType',
          summary: 'Take an event type out of the catalogue',
          tags,
          params: ByName,
          response: { 204: Nothing },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { name } = request.params;
        await inTransaction(pool, async (client) => {
          if (!(await deleteEventType(client, name))) throw typeNotFound(name);
          await request.audit.record(client, { tenant: null, objectId: name });
        });
        return reply.code(204).send();
      },
    );
  };
}

const typeNotFound = (name: string) => new Problem('not_found', `There is no event type ${name}.`);

function toSettings(name: string, body: Static<typeof EventTypeBody>): EventTypeSettings {
  if (!isEventType(name))
    throw invalidField(
      'name',
      'must be segments of letters, digits, _ or - with dots between them, at most 128 characters',
    );
  if (name.startsWith(RESERVED_TYPE_PREFIX))
    throw invalidField('name', `must not start with "${RESERVED_TYPE_PREFIX}": that is reserved`);
  const { description = '', schema = null, example = null, deprecated = false } = body;
  if (schema !== null) checkSchema(schema, 'schema');
  if (example !== null) checkSize(example, 'example');
  if (schema !== null && example !== null) checkAgainst(schema, example, 'example');
  return { name, description, schema, example, deprecated };
}

const settingsOf = ({ description, schema, example, deprecated }: EventTypeSettings) => ({
  description,
  schema,
  example,
  deprecated,
});

const showEventType = (type: EventTypeRecord): Shown<typeof EventTypeSchema> => ({
  name: type.name,
  ...settingsOf(type),
  created_at: type.created_at,
  updated_at: type.updated_at,
});
