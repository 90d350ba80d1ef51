import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { isCredentialHeader } from '../../deliver/index.ts';
import { idPrefixes, newId, parsePublicId, publicId, type Uuid } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { readTenant } from '../../ingest/index.ts';
import { endpointChanges } from '../../manage/endpoint-audit.ts';
import { applyPatch, type Editable } from '../../manage/endpoint-patch.ts';
import { type Consent, receiverConsents } from '../../manage/receiver-consent.ts';
import { inTransaction } from '../../postgres/database.ts';
import {
  addSecret,
  createEndpoint,
  deleteEndpoint,
  type EndpointView,
  findEndpoint,
  listEndpoints,
  lockEndpoint,
  updateEndpoint,
} from '../../postgres/queries/endpoints.ts';
import { revokePreviousSecrets, rotateSecret } from '../../postgres/queries/rotate-secret.ts';
import { endpointTotals, HOUR } from '../../postgres/queries/stats.ts';
import { sealConfig } from '../../postgres/sealed-config.ts';
import type { ApiContext } from '../dependencies.ts';
import { tenantOf } from '../http/authenticator.ts';
import { DEFAULT_LIMIT, ListFilters, PageQuery, readCursor, toPage } from '../http/pagination.ts';
import { idParams, Nothing, Page, type Reasons } from '../openapi/describe.ts';
import { EndpointPatch, NewEndpoint } from './schema.ts';
import { checkedSecret, fits, newSecret, profileOf } from './secret-routes.ts';
import { showEndpoint } from './view.ts';
import { CreatedEndpoint, EndpointSchema } from './view-schema.ts';

const EndpointList = Type.Object(
  { ...PageQuery, tenant: ListFilters.tenant },
  { additionalProperties: false },
);
const EndpointId = idParams('ep', 'endpoint');
type ById = { Params: { id: string } };

/** In whole hours: this one, and the day before it. */
const HEALTH_WINDOW_MS = 25 * 3_600_000;

const RECEIVER_PROBLEMS: Reasons = {
  url_invalid: '`url`, or `auth.token_url`, is no complete http(s) URL.',
  url_forbidden:
    '`url`, or `auth.token_url`, leads to an address that Posthorn may not call, is not https, or has credentials in it.',
  challenge_failed: 'The receiver did not answer the challenge as it should; nothing was changed.',
  rate_limited:
    'As many challenges of the tenant are under way as may be; or the key makes too many requests.',
  overloaded: 'As many challenges are under way as may be. Try again after `Retry-After` seconds.',
};

const EMPTY: Editable = {
  url: '',
  description: '',
  config: {},
  metadata: {},
  enabled: true,
  disabled_reason: null,
  paused: false,
};

export function endpointRoutes(context: ApiContext): FastifyPluginAsync {
  const { pool, clock, endpoints, secretBox } = context;
  const consents = receiverConsents(context);

  const sealed = (id: Uuid, endpoint: Editable): Editable => ({
    ...endpoint,
    config: sealConfig(endpoint.config, id, secretBox, isCredentialHeader),
  });

  /** The receiver takes its time: this is not for inside the transaction. */
  async function askReceiver(request: FastifyRequest<ById>, patch: EndpointPatch): Promise<Consent | null> {
    if (patch.url === undefined && patch.challenge === undefined) return null;
    const before = await findEndpoint(pool, endpointId(request.params.id), request.caller.tenant);
    if (before === null) throw endpointNotFound(request.params.id);
    return consents.toChange(request.caller, before, applyPatch(before, patch, context));
  }

  async function change(request: FastifyRequest<ById>, patch: EndpointPatch): Promise<EndpointView> {
    const { caller, params, audit } = request;
    const id = endpointId(params.id);
    const consent = await askReceiver(request, patch);
    await inTransaction(pool, async (client) => {
      const before = await lockEndpoint(client, id, caller.tenant);
      if (before === null) throw endpointNotFound(params.id);
      const after = sealed(id, applyPatch(before, patch, context));
      consents.check(consent, caller, before, after);
      if (JSON.stringify(pick(before)) === JSON.stringify(after)) return audit.nothingChanged();
      const switched = before.enabled === after.enabled ? null : after.enabled ? 'on' : 'off';
      await updateEndpoint(client, { id, ...after }, switched);
      const [old, profile] = [profileOf(before.config.signature), profileOf(after.config.signature)];
      const changes = endpointChanges(before, after);
      if (!fits(old, profile)) changes.push({ field: 'secret' });
      await audit.record(client, { tenant: before.tenant, objectId: params.id, changes });
      if (!fits(old, profile)) {
        // The secrets there are of the wrong kind: with none that fits nothing could be sent at all.
        const sealed = secretBox.seal(newSecret(profile), id);
        await rotateSecret(client, { id: newId(clock.now()), endpointId: id, sealed }, 0);
        await revokePreviousSecrets(client, id);
      }
    });
    await endpoints.refresh();
    return (await findEndpoint(pool, id, caller.tenant))!;
  }

  async function show(view: EndpointView) {
    return (await showAll([view]))[0]!;
  }

  async function showAll(views: readonly EndpointView[]) {
    const ids = views.map(({ id }) => id);
    const totals = await endpointTotals(pool, ids, { seconds: HOUR, at: clock.now() - HEALTH_WINDOW_MS });
    return views.map((view) => showEndpoint(view, totals.get(view.id)!));
  }

  return async (server) => {
    server.post<{ Body: NewEndpoint }>(
      '/endpoints',
      {
        schema: {
          operationId: 'createEndpoint',
          summary: 'Create an endpoint',
          description: 'The answer shows its signing secret.',
          tags: ['Endpoints'],
          body: NewEndpoint,
          response: { 201: CreatedEndpoint },
          problems: RECEIVER_PROBLEMS,
        },
      },
      async (request, reply) => {
        const { tenant: named, secret: given, ...settings } = request.body;
        const tenant = readTenant(named, request.caller.tenant);
        const id = newId(clock.now());
        const wanted = applyPatch(EMPTY, settings, context);
        const endpoint = sealed(id, wanted);
        const profile = profileOf(endpoint.config.signature);
        const secret = given === undefined ? newSecret(profile) : checkedSecret(given, profile);
        await consents.toNew(request.caller, { id, tenant }, wanted, secret);
        await inTransaction(pool, async (client) => {
          await createEndpoint(client, { id, tenant, ...endpoint });
          await request.audit.record(client, {
            tenant,
            objectId: publicId(idPrefixes.endpoint, id),
            changes: endpointChanges(EMPTY, endpoint),
          });
          await addSecret(client, {
            id: newId(clock.now()),
            endpointId: id,
            sealed: secretBox.seal(secret, id),
          });
        });
        await endpoints.refresh();
        const view = (await findEndpoint(pool, id, null))!;
        return reply
          .code(201)
          .header('location', `/v1/endpoints/${publicId(idPrefixes.endpoint, id)}`)
          .send({ ...(await show(view)), secret });
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
        const { limit = DEFAULT_LIMIT, cursor, tenant } = request.query;
        const rows = await listEndpoints(pool, {
          tenant: tenantOf(request.caller, tenant),
          before: readCursor(idPrefixes.endpoint, cursor),
          limit: limit + 1,
        });
        const shown = new Map((await showAll(rows)).map((endpoint, index) => [rows[index]!, endpoint]));
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
        const view = await findEndpoint(pool, endpointId(request.params.id), request.caller.tenant);
        if (view === null) throw endpointNotFound(request.params.id);
        return show(view);
      },
    );

    server.patch<ById & { Body: EndpointPatch }>(
      '/endpoints/:id',
      {
        schema: {
          operationId: 'updateEndpoint',
          summary: 'Change an endpoint',
          description:
            'A merge patch: what is absent stays, `null` goes back to the default (but `breaker`: `null` is off, `{}` the default). `metadata` and `headers` are merged, other objects are replaced whole.',
          tags: ['Endpoints'],
          params: EndpointId,
          body: EndpointPatch,
          response: { 200: EndpointSchema },
          problems: {
            ...RECEIVER_PROBLEMS,
            conflict: 'Somebody else changed it while the receiver was being challenged.',
          },
        },
      },
      async (request) => show(await change(request, request.body)),
    );

    server.post<ById>(
      '/endpoints/:id/pause',
      {
        schema: {
          operationId: 'pauseEndpoint',
          summary: 'Pause an endpoint',
          description: 'Nothing is sent to it until it is resumed; its deliveries wait.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 200: EndpointSchema },
        },
      },
      async (request) => show(await change(request, { paused: true })),
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
      async (request) => show(await change(request, { paused: false })),
    );

    server.delete<ById>(
      '/endpoints/:id',
      {
        schema: {
          operationId: 'deleteEndpoint',
          summary: 'Delete an endpoint',
          description: 'What waits for it is skipped. Its history stays readable.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        const id = endpointId(request.params.id);
        await inTransaction(pool, async (client) => {
          const endpoint = await lockEndpoint(client, id, request.caller.tenant);
          if (endpoint === null) throw endpointNotFound(request.params.id);
          await deleteEndpoint(client, id);
          await request.audit.record(client, { tenant: endpoint.tenant, objectId: request.params.id });
        });
        await endpoints.refresh();
        return reply.code(204).send();
      },
    );
  };
}

const pick = ({
  url,
  description,
  config,
  metadata,
  enabled,
  disabled_reason,
  paused,
}: Editable): Editable => ({
  url,
  description,
  config,
  metadata,
  enabled,
  disabled_reason,
  paused,
});

export function endpointId(text: string): Uuid {
  const id = parsePublicId(idPrefixes.endpoint, text);
  if (id === null) throw endpointNotFound(text);
  return id;
}

export const endpointNotFound = (text: string) => new Problem('not_found', `There is no endpoint ${text}.`);
