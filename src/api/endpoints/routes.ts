import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { idPattern, idPrefixes, parsePublicId, type Uuid } from '../../domain/ids.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import type { Endpoints } from '../../manage/endpoints.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import { publicKeyOf, signatureProfileOf } from '../../manage/signing-secrets.ts';
import { type EndpointView, findEndpoint, listEndpoints } from '../../postgres/queries/endpoints.ts';
import { HOUR, readEndpointTotals } from '../../postgres/queries/stats.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage, typeFilter } from '../http/pagination.ts';
import { ENDPOINT_BODY_BYTES } from '../http/v1.ts';
import { withMessage } from '../http/validation.ts';
import { exampleId, idParams, Nothing, Page, type Reasons } from '../openapi/describe.ts';
import { EndpointPatch, NewEndpoint } from './schema.ts';
import { showEndpoint, showSettings } from './view.ts';
import { ChangedEndpoint, CreatedEndpoint, EndpointSchema } from './view-schema.ts';

const MAX_IDS = 100;
const ONE_ID = idPattern('ep').slice(1, -1);

const EndpointList = Type.Object(
  {
    ...PageQuery,
    tenant: ListFilters.tenant,
    ids: Type.Optional(
      Type.String({
        pattern: `^${ONE_ID}(,${ONE_ID}){0,${MAX_IDS - 1}}$`,
        description: `Selects only these endpoints: at most ${MAX_IDS} ids with commas between. Ids of other or deleted endpoints find nothing.`,
        examples: [exampleId('ep')],
        ...withMessage(`must be 1 to ${MAX_IDS} endpoint ids (ep_…) with commas between`),
      }),
    ),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Selects only endpoints with this text in their description or URL, in any case.',
        examples: ['warehouse'],
      }),
    ),
    event_type: typeFilter(
      'Selects only endpoints that subscribe to this event type, by its name or by a pattern. Channels and filters do not count.',
    ),
  },
  { additionalProperties: false },
);
const EndpointId = idParams('ep', 'endpoint');
type ById = { Params: { id: string } };

/** Statistics are kept by the hour: this one, and the 24 before it. */
const HEALTH_WINDOW_MS = 25 * 3_600_000;

const RECEIVER_PROBLEMS: Reasons = {
  url_invalid: '`url` or `auth.token_url` is not a complete http or https URL.',
  url_forbidden:
    '`url` or `auth.token_url` points to an address that Posthorn may not call, is not https, or contains credentials.',
  challenge_failed: 'The receiver did not pass the challenge; nothing was changed.',
  rate_limited: 'The tenant has too many challenges in progress, or the key makes too many requests.',
  overloaded: 'Posthorn has too many challenges in progress. Try again after `Retry-After` seconds.',
};

const ENDPOINT_EXISTS =
  'With `POSTHORN_UNIQUE_ENDPOINTS=on`: the tenant has another endpoint with this URL that gets some of the same events.';

const idOf = (request: FastifyRequest<ById>): Uuid => readObjectId('endpoint', request.params.id);

export function endpointRoutes(
  manage: Endpoints,
  { pool, clock, endpoints }: Pick<ApiDependencies, 'pool' | 'clock' | 'endpoints'>,
): FastifyPluginAsync {
  /** The cache has the secrets. It lacks an endpoint that another process has just created. */
  async function publicKey({ id, config }: EndpointView): Promise<string | null> {
    if (signatureProfileOf(config.signature) !== 'standard-ed25519') return null;
    if (endpoints.get(id) === undefined) await endpoints.refresh();
    const current = endpoints.get(id)?.secrets[0];
    return current === undefined ? null : publicKeyOf(current.secret);
  }

  async function show(caller: Caller, view: EndpointView) {
    return (await showAll(caller, [view]))[0]!;
  }

  async function showAll(caller: Caller, views: readonly EndpointView[]) {
    const ids = views.map(({ id }) => id);
    const totals = await readEndpointTotals(pool, ids, { seconds: HOUR, at: clock.now() - HEALTH_WINDOW_MS });
    return Promise.all(
      views.map(async (view) =>
        showEndpoint(
          manage.visibleTo(caller, view),
          totals.get(view.id)!,
          await publicKey(view),
          clock.now(),
        ),
      ),
    );
  }

  return async (server) => {
    server.post<{ Body: NewEndpoint }>(
      '/endpoints',
      {
        bodyLimit: ENDPOINT_BODY_BYTES,
        schema: {
          operationId: 'createEndpoint',
          summary: 'Create an endpoint',
          description: 'The answer contains its signing secret, or its public key with `standard-ed25519`.',
          tags: ['Endpoints'],
          body: NewEndpoint,
          response: { 201: CreatedEndpoint },
          problems: {
            ...RECEIVER_PROBLEMS,
            conflict: 'The data of the tenant is being deleted.',
            endpoint_exists: ENDPOINT_EXISTS,
          },
        },
      },
      async (request, reply) => {
        const { endpoint, warnings, secret } = await manage.create(request, request.body);
        const shown = await show(request.caller, endpoint);
        return reply
          .code(201)
          .header('location', `/v1/endpoints/${shown.id}`)
          .send({ ...shown, warnings, secret: shown.public_key === null ? secret : null });
      },
    );

    server.get<{ Querystring: Static<typeof EndpointList> }>(
      '/endpoints',
      {
        schema: {
          operationId: 'listEndpoints',
          summary: 'List endpoints',
          tags: ['Endpoints'],
          querystring: EndpointList,
          response: { 200: Page(EndpointSchema) },
        },
      },
      async (request) => {
        const { limit = DEFAULT_LIMIT, cursor, tenant, ids, q, event_type } = request.query;
        const rows = await listEndpoints(pool, {
          tenant: visibleTenant(request.caller, tenant),
          before: readCursor(idPrefixes.endpoint, cursor),
          limit: limit + 1,
          ids: ids?.split(',').flatMap((id) => parsePublicId(idPrefixes.endpoint, id) ?? []) ?? null,
          text: q ?? null,
          eventType: event_type ?? null,
        });
        const shown = new Map(
          (await showAll(request.caller, rows)).map((endpoint, index) => [rows[index]!, endpoint]),
        );
        return toPage(rows, limit, idPrefixes.endpoint, (row) => shown.get(row)!);
      },
    );

    server.get<ById>(
      '/endpoints/:id',
      {
        schema: {
          operationId: 'getEndpoint',
          summary: 'Show an endpoint',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 200: EndpointSchema },
        },
      },
      async (request) => {
        const id = idOf(request);
        const endpoint = await findEndpoint(pool, id, request.caller.tenant);
        if (endpoint === null) throw notFound('endpoint', id);
        return show(request.caller, endpoint);
      },
    );

    server.patch<ById & { Body: EndpointPatch }>(
      '/endpoints/:id',
      {
        bodyLimit: ENDPOINT_BODY_BYTES,
        schema: {
          operationId: 'updateEndpoint',
          summary: 'Change an endpoint',
          description:
            'A JSON merge patch: an absent field stays as it is, `null` restores the default (for `breaker`, `null` means no breaker and `{}` the default one). `metadata` and `headers` are merged, other objects are replaced as a whole.',
          tags: ['Endpoints'],
          params: EndpointId,
          body: EndpointPatch,
          response: { 200: ChangedEndpoint },
          problems: {
            ...RECEIVER_PROBLEMS,
            endpoint_exists: ENDPOINT_EXISTS,
            conflict: 'Another request changed the endpoint while its receiver was being challenged.',
          },
        },
      },
      async (request) => {
        const { endpoint, warnings } = await manage.update(
          request,
          idOf(request),
          request.body,
          showSettings,
        );
        return { ...(await show(request.caller, endpoint)), warnings };
      },
    );

    server.post<ById>(
      '/endpoints/:id/pause',
      {
        schema: {
          operationId: 'pauseEndpoint',
          summary: 'Pause an endpoint',
          description: 'The deliveries to the endpoint wait until you resume it.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 200: EndpointSchema },
        },
      },
      async (request) => show(request.caller, await manage.pause(request, idOf(request))),
    );
    server.post<ById>(
      '/endpoints/:id/resume',
      {
        schema: {
          operationId: 'resumeEndpoint',
          summary: 'Resume a paused endpoint',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 200: EndpointSchema },
        },
      },
      async (request) => show(request.caller, await manage.resume(request, idOf(request))),
    );

    server.delete<ById>(
      '/endpoints/:id',
      {
        schema: {
          operationId: 'deleteEndpoint',
          summary: 'Delete an endpoint',
          description: 'Posthorn skips the waiting deliveries of the endpoint. Its history stays readable.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        await manage.delete(request, idOf(request));
        return reply.code(204).send();
      },
    );
  };
}
