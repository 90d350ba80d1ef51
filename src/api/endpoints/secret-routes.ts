/** The signing secrets of an endpoint: made, rotated, revoked, shown. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { SignatureProfile, SignatureSetting } from '../../domain/endpoint.ts';
import { newId } from '../../domain/ids.ts';
import { invalidField, Problem } from '../../domain/problem.ts';
import { inTransaction } from '../../postgres/database.ts';
import { findEndpoint, lockEndpoint } from '../../postgres/queries/endpoints.ts';
import { loadSecrets, revokePreviousSecrets, rotateSecret } from '../../postgres/queries/rotate-secret.ts';
import type { ApiContext } from '../dependencies.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, idParams, Nothing, Time } from '../openapi/describe.ts';
import { endpointId, endpointNotFound } from './routes.ts';

const Rotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 90 * 86_400,
        description: 'How long the old secret still signs beside the new one.',
      }),
    ),
    secret: Type.Optional(
      Type.String({ maxLength: 200, description: 'The new secret, if you want to choose it.' }),
    ),
  },
  { additionalProperties: false, title: 'Rotation', examples: [{ overlap_seconds: 3600 }] },
);
const secretFields = {
  secret: Type.String(),
  public_key: Type.Optional(
    Type.String({ description: 'Of an Ed25519 secret: what receivers verify with.' }),
  ),
};
const RotatedSecret = Type.Object(
  { ...secretFields, previous_expires_at: Nullable(Time) },
  {
    title: 'RotatedSecret',
    examples: [{ secret: 'whsec_…', previous_expires_at: EXAMPLE_TIME }],
  },
);
const CurrentSecret = Type.Object(
  {
    ...secretFields,
    created_at: Time,
    previous: Type.Array(Type.Object({ created_at: Time, expires_at: Nullable(Time) }), {
      description: 'Older ones that still sign.',
    }),
  },
  {
    title: 'CurrentSecret',
    examples: [{ secret: 'whsec_…', created_at: EXAMPLE_TIME, previous: [] }],
  },
);
const EndpointId = idParams('ep', 'endpoint');
type ById = { Params: { id: string } };

export function endpointSecretRoutes(context: ApiContext): FastifyPluginAsync {
  const { pool, clock, endpoints, secretBox, signatureOverlapMs } = context;

  return async (server) => {
    server.post<ById & { Body: Static<typeof Rotation> }>(
      '/endpoints/:id/rotate-secret',
      {
        schema: {
          operationId: 'rotateSecret',
          summary: 'Give an endpoint a new signing secret',
          description: 'The old one signs beside the new one for a while, so that receivers can change over.',
          tags: ['Endpoints'],
          params: EndpointId,
          body: Rotation,
          response: { 200: RotatedSecret },
        },
      },
      async (request) => {
        const id = endpointId(request.params.id);
        const { overlap_seconds, secret: given } = request.body;
        const rotated = await inTransaction(pool, async (client) => {
          const endpoint = await lockEndpoint(client, id, request.caller.tenant);
          if (endpoint === null) throw endpointNotFound(request.params.id);
          const profile = profileOf(endpoint.config.signature);
          const secret = given === undefined ? newSecret(profile) : checkedSecret(given, profile);
          const previousExpiresAt = await rotateSecret(
            client,
            { id: newId(clock.now()), endpointId: id, sealed: secretBox.seal(secret, id) },
            overlap_seconds === undefined ? signatureOverlapMs : overlap_seconds * 1000,
          );
          await request.audit.record(client, {
            tenant: endpoint.tenant,
            objectId: request.params.id,
            changes: [{ field: 'secret' }],
          });
          return { secret, previousExpiresAt };
        });
        await endpoints.refresh();
        return { ...showSecret(rotated.secret), previous_expires_at: rotated.previousExpiresAt };
      },
    );

    server.delete<ById>(
      '/endpoints/:id/secrets/previous',
      {
        schema: {
          operationId: 'revokePreviousSecrets',
          summary: 'Revoke the old signing secrets now',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 204: Nothing },
        },
        config: { audit: 'endpoint.revoke_previous_secrets' },
      },
      async (request, reply) => {
        const id = endpointId(request.params.id);
        await inTransaction(pool, async (client) => {
          const endpoint = await lockEndpoint(client, id, request.caller.tenant);
          if (endpoint === null) throw endpointNotFound(request.params.id);
          await revokePreviousSecrets(client, id);
          await request.audit.record(client, { tenant: endpoint.tenant, objectId: request.params.id });
        });
        await endpoints.refresh();
        return reply.code(204).send();
      },
    );

    server.get<ById>(
      '/endpoints/:id/secret',
      {
        schema: {
          operationId: 'getSecret',
          summary: 'Show the signing secret',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 200: CurrentSecret },
        },
        // It signs: whoever has it can pose as Posthorn. So a key that may only look may not look at that, and who
        // has seen it is worth knowing.
        config: { reads: false, audit: 'endpoint.show_secret' },
      },
      async (request) => {
        const id = endpointId(request.params.id);
        const endpoint = await findEndpoint(pool, id, request.caller.tenant);
        if (endpoint === null) throw endpointNotFound(request.params.id);
        const [current, ...previous] = await loadSecrets(pool, id);
        if (current === undefined) throw new Problem('not_found', 'The endpoint has no secret.');
        await request.audit.record(pool, { tenant: endpoint.tenant, objectId: request.params.id });
        return {
          ...showSecret(secretBox.open(current.sealed, id)),
          created_at: current.createdAt,
          previous: previous.map(({ createdAt, expiresAt }) => ({
            created_at: createdAt,
            expires_at: expiresAt,
          })),
        };
      },
    );
  };
}

export function profileOf(setting: SignatureSetting | undefined): SignatureProfile {
  if (setting === undefined) return 'standard';
  return typeof setting === 'string' ? setting : setting.profile;
}

/** Whether a secret of the one profile also signs under the other. */
export function fits(secretOf: SignatureProfile, profile: SignatureProfile): boolean {
  return (secretOf === 'standard-ed25519') === (profile === 'standard-ed25519');
}

const ED25519_SEED = -32;

export function newSecret(profile: SignatureProfile): string {
  if (profile !== 'standard-ed25519') return `whsec_${randomBytes(32).toString('base64')}`;
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(ED25519_SEED);
  const point = publicKey.export({ format: 'der', type: 'spki' }).subarray(ED25519_SEED);
  return `whsk_${Buffer.concat([seed, point]).toString('base64')}`;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function checkedSecret(secret: string, profile: SignatureProfile): string {
  const asymmetric = profile === 'standard-ed25519';
  const prefix = asymmetric ? 'whsk_' : 'whsec_';
  const encoded = secret.startsWith(prefix) ? secret.slice(prefix.length) : '';
  const bytes = BASE64.test(encoded) ? Buffer.from(encoded, 'base64').length : 0;
  if (asymmetric ? bytes === 64 : bytes >= 24 && bytes <= 64) return secret;
  throw invalidField('secret', `must be "${prefix}" and base64 of ${asymmetric ? '64' : '24 to 64'} bytes`);
}

/** With the half that receivers verify with, where there is one. */
function showSecret(secret: string): { secret: string; public_key?: string } {
  if (!secret.startsWith('whsk_')) return { secret };
  return {
    secret,
    public_key: `whpk_${Buffer.from(secret.slice(5), 'base64').subarray(32).toString('base64')}`,
  };
}
