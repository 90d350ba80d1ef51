/** The dry run of a change of `api_version`: both payloads of a recent event side by side. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Conversions, Preview } from '../../convert/index.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { resolveEndpoint } from '../../domain/endpoint-config.ts';
import { type EventContent, matchesType } from '../../domain/event.ts';
import { publicId, type Uuid } from '../../domain/ids.ts';
import { errorClasses } from '../../domain/outcome.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import type { Pool } from '../../postgres/database.ts';
import { findEndpoint } from '../../postgres/queries/endpoints.ts';
import { loadEvents } from '../../postgres/queries/load-events.ts';
import { newestEvents } from '../../postgres/queries/search-events.ts';
import { ConversionSchema } from '../deliveries/schema.ts';
import { Nullable } from '../http/validation.ts';
import { exampleId, Id, idParams, type Shown } from '../openapi/describe.ts';
import { ApiVersion } from './schema.ts';

const EndpointId = idParams('ep', 'endpoint');
/** Of how many recent events one is chosen. */
const RECENT_EVENTS = 500;

const PreviewBody = Type.Object(
  {
    api_version: Nullable(ApiVersion),
    event_id: Type.Optional(Id('evt', 'Default: the newest event that the endpoint subscribes to.')),
  },
  {
    additionalProperties: false,
    title: 'VersionPreviewRequest',
    examples: [{ api_version: '2026-04-01' }],
  },
);

const PreviewedPayload = Type.Object(
  {
    api_version: Nullable(Type.String()),
    version: Nullable(Type.String({ description: 'The version of `data`. Null: it is not known.' })),
    conversion: Nullable(ConversionSchema),
    data: Type.Unknown({ description: 'What the endpoint would get as `data`.' }),
    error: Nullable(
      Type.Object(
        { class: Type.Literal('conversion_failed'), message: Type.String(), hint: Type.String() },
        { description: 'The conversion failed: the delivery would, too.' },
      ),
    ),
  },
  { title: 'PreviewedPayload' },
);

const VersionPreview = Type.Object(
  {
    event_id: Id('evt'),
    event_type: Type.String(),
    current: PreviewedPayload,
    proposed: PreviewedPayload,
  },
  {
    title: 'VersionPreview',
    examples: [
      {
        event_id: exampleId('evt'),
        event_type: 'order.created',
        current: {
          api_version: '2025-10-01',
          version: '2025-10-01',
          conversion: { status: 'converted', from: '2026-04-01', to: '2025-10-01', converter: '2f1c…' },
          data: { name: 'Ann Lee' },
          error: null,
        },
        proposed: {
          api_version: '2026-04-01',
          version: '2026-04-01',
          conversion: null,
          data: { first_name: 'Ann', last_name: 'Lee' },
          error: null,
        },
      },
    ],
  },
);

export function previewRoutes(conversions: Pick<Conversions, 'preview'>, pool: Pool): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Params: Static<typeof EndpointId>; Body: Static<typeof PreviewBody> }>(
      '/endpoints/:id/preview',
      {
        schema: {
          operationId: 'previewVersion',
          summary: 'Show what a change of `api_version` would change',
          description:
            'Converts a recent event to the version that the endpoint pins now and to the proposed one. Changes and sends nothing.',
          tags: ['Endpoints'],
          params: EndpointId,
          body: PreviewBody,
          response: { 200: VersionPreview },
        },
        config: { reads: true },
      },
      async (request) => {
        const id = readObjectId('endpoint', request.params.id);
        const view = await findEndpoint(pool, id, request.caller.tenant);
        if (view === null) throw notFound('endpoint', id);
        const endpoint = resolveEndpoint(
          { ...view, disabledReason: view.disabled_reason, deleted: false },
          [],
        );
        const event = await chooseEvent(pool, endpoint, request.body.event_id);
        const previewWith = async (apiVersion: string | null) =>
          showPreview(
            apiVersion,
            await conversions.preview({ ...endpoint, payload: 'full', apiVersion }, event),
          );
        return {
          event_id: publicId('evt', event.id),
          event_type: event.type,
          current: await previewWith(endpoint.apiVersion),
          proposed: await previewWith(request.body.api_version),
        };
      },
    );
  };
}

async function chooseEvent(pool: Pool, endpoint: Endpoint, given: string | undefined): Promise<EventContent> {
  const ids = given === undefined ? await recentEvents(pool, endpoint) : [readObjectId('event', given)];
  for (const id of ids) {
    const event = (await loadEvents(pool, [id])).get(id);
    if (event !== undefined && event.tenant === endpoint.tenant) return event;
  }
  if (given !== undefined)
    throw invalidField('event_id', 'is not an event of the tenant with a stored payload');
  throw new Problem('not_found', 'The tenant has no recent event that this endpoint subscribes to.');
}

async function recentEvents(pool: Pool, { tenant, events: patterns }: Endpoint): Promise<Uuid[]> {
  const events = await newestEvents(pool, tenant, RECENT_EVENTS);
  return events.flatMap(({ id, type }) =>
    patterns.some((pattern) => matchesType(pattern, type)) ? [id] : [],
  );
}

function showPreview(
  apiVersion: string | null,
  { version, data, note, error }: Preview,
): Shown<typeof PreviewedPayload> {
  return {
    api_version: apiVersion,
    version,
    conversion: note,
    data: data === null ? null : (JSON.parse(data.toString()) as unknown),
    error:
      error === null
        ? null
        : { class: 'conversion_failed', message: error, hint: errorClasses.conversion_failed },
  };
}
