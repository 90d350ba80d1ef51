import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { Uuid } from '../../domain/ids.ts';
import type { EndpointSecrets } from '../../manage/endpoint-secrets.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import { publicKeyOf } from '../../manage/signing-secrets.ts';
import { idParams, Nothing } from '../openapi/describe.ts';
import { CurrentSecret, RotatedSecret, Rotation } from './secret-schema.ts';

const EndpointId = idParams('ep', 'endpoint');
type ById = { Params: { id: string } };

const idOf = (request: FastifyRequest<ById>): Uuid => readObjectId('endpoint', request.params.id);

/** The signing secrets of an endpoint. */
export function endpointSecretRoutes(secrets: EndpointSecrets): FastifyPluginAsync {
  return async (server) => {
    server.post<ById & { Body: Static<typeof Rotation> }>(
      '/endpoints/:id/rotate-secret',
      {
        schema: {
          operationId: 'rotateSecret',
          summary: 'Give an endpoint a new signing secret',
          description:
            'Both the old and the new secret sign for a while, so that receivers can switch. At most five secrets sign at once: a sixth is refused, unless `overlap_seconds` is 0.',
          tags: ['Endpoints'],
          params: EndpointId,
          body: Rotation,
          response: { 200: RotatedSecret },
        },
      },
      async (request) => {
        const { secret, previousExpiresAt, primary, switchAt } = await secrets.rotate(
          request,
          idOf(request),
          request.body,
        );
        const shown = showSecret(secret);
        return {
          ...shown,
          // Only GET …/secret returns a private key.
          secret: shown.public_key === undefined ? secret : null,
          previous_expires_at: previousExpiresAt,
          primary,
          switch_at: switchAt,
        };
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
        await secrets.revokePrevious(request, idOf(request));
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
        // A secret lets its holder sign as Posthorn. So read keys may not see it, and each read is audited.
        config: { reads: false, audit: 'endpoint.show_secret' },
      },
      async (request) => {
        const { secret, createdAt, header, previous } = await secrets.show(request, idOf(request));
        return {
          ...showSecret(secret),
          created_at: createdAt,
          header,
          previous: previous.map((older) => ({
            created_at: older.createdAt,
            expires_at: older.expiresAt,
            header: older.header,
          })),
        };
      },
    );
  };
}

function showSecret(secret: string): { secret: string; public_key?: string } {
  const publicKey = publicKeyOf(secret);
  return publicKey === null ? { secret } : { secret, public_key: publicKey };
}
