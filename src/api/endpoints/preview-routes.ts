/** The dry run of a change of `api_version`: both payloads of a recent event side by side. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Conversions, Preview } from '../../convert/index.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { resolveEndpoint } from '../../domain/endpoint-config.ts';
import type { EventContent } from '../../domain/event.ts';
import { publicId } from '../../domain/ids.ts';
import { errorClasses } from '../../domain/outcome.ts';
import { PatternIndex } from '../../domain/pattern-index.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { resolvePin } from '../../domain/version-pins.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import type { VersionDirectory } from '../../ports/version-directory.ts';
import type { Pool } from '../../postgres/database.ts';
import { findEndpoint } from '../../postgres/queries/endpoints.ts';
import { loadEvents } from '../../postgres/queries/load-events.ts';
import { listNewestEvents } from '../../postgres/queries/search-events.ts';
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
    event_id: Type.Optional(
      Id(
        'evt',
        'Default: the newest event that the endpoint subscribes to, if possible of a type whose version would change.',
      ),
    ),
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
        {
          description: 'Why the conversion failed. A delivery of this event would fail with the same error.',
        },
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

export function previewRoutes(
  conversions: Pick<Conversions, 'preview'>,
  pool: Pool,
  versions: Pick<VersionDirectory, 'versionsOf'>,
): FastifyPluginAsync {
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
        const { api_version: proposed, event_id: given } = request.body;
        const isChanged = (type: string): boolean => {
          const [before, after] = [endpoint.apiVersion, proposed].map((pin) =>
            pin === null ? null : (resolvePin(versions.versionsOf(type), pin)?.name ?? null),
          );
          return before !== after;
        };
        const event =
          given === undefined
            ? await chooseEvent(pool, endpoint, isChanged)
            : await findGivenEvent(pool, endpoint, given);
        const previewWith = async (apiVersion: string | null) =>
          showPreview(
            apiVersion,
            await conversions.preview({ ...endpoint, payload: 'full', apiVersion }, event),
          );
        return {
          event_id: publicId('evt', event.id),
          event_type: event.type,
          current: await previewWith(endpoint.apiVersion),
          proposed: await previewWith(proposed),
        };
      },
    );
  };
}

async function findGivenEvent(pool: Pool, { tenant }: Endpoint, given: string): Promise<EventContent> {
  const id = readObjectId('event', given);
  const event = (await loadEvents(pool, [id])).get(id);
  if (event?.tenant === tenant) return event;
  throw invalidField('event_id', 'is not an event of the tenant with a stored payload');
}

/** The newest event of a type whose version changes. If there is none, the newest event. */
async function chooseEvent(
  pool: Pool,
  { tenant, events: patterns }: Endpoint,
  isChanged: (type: string) => boolean,
): Promise<EventContent> {
  const subscribed = new PatternIndex<true>();
  for (const pattern of patterns) subscribed.add(pattern, true);
  const events = (await listNewestEvents(pool, tenant, RECENT_EVENTS)).filter(
    ({ type }) => subscribed.match(type).length > 0,
  );
  const changed = events.filter(({ type }) => isChanged(type));
  for (const { id } of new Set([...changed, ...events])) {
    const event = (await loadEvents(pool, [id])).get(id);
    if (event !== undefined) return event;
  }
  throw new Problem('not_found', 'The tenant has no recent event that this endpoint subscribes to.');
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
