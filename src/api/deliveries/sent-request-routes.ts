import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { buildBody } from '../../deliver/index.ts';
import { resolveEndpoint } from '../../domain/endpoint-config.ts';
import { eventIdOfDelivery } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { findDelivery, listAttempts } from '../../postgres/queries/deliveries.ts';
import { findEndpointRecord } from '../../postgres/queries/endpoints.ts';
import { loadEvents } from '../../postgres/queries/load-events.ts';
import type { ApiContext } from '../dependencies.ts';
import { answerOf, Id } from '../openapi/describe.ts';
import { deliveryId, deliveryNotFound } from './routes.ts';

const API_VERSION = 'posthorn-api-version';
/** What only this answer may set: they say how it is sent itself. */
const OURS = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'connection',
  'date',
  'host',
  'x-request-id',
]);
const MAX_ATTEMPTS = 1000;

const AttemptPlace = Type.Object({
  id: Id('dlv', 'The id of the delivery.'),
  number: Type.String({ description: 'The number of the attempt: 1 is the first.', examples: ['1'] }),
});

/**
 * A past request again: the answer's body is the request's body, byte for byte, rebuilt from what is stored, and the
 * headers that were sent with it (its signature, its timestamp) are on the answer too. As it was logged, without
 * credentials.
 */
export function sentRequestRoutes(context: ApiContext): FastifyPluginAsync {
  const { pool } = context;
  return async (server) => {
    server.get<{ Params: Static<typeof AttemptPlace> }>(
      '/deliveries/:id/attempts/:number/request',
      {
        schema: {
          operationId: 'getSentRequest',
          summary: 'Show the request that was sent',
          description:
            'The body of the answer is the body of the request, byte for byte, and its headers are on the answer too, without credentials.',
          tags: ['Deliveries'],
          params: AttemptPlace,
          response: { 200: answerOf('The body as it was sent.', 'application/json', Type.Unknown()) },
        },
      },
      async (request, reply) => {
        const id = deliveryId(request.params.id);
        const delivery = await findDelivery(pool, id, request.caller.tenant);
        if (delivery === null) throw deliveryNotFound(request.params.id);
        const attempts = await listAttempts(pool, { first: id, last: id, after: null, limit: MAX_ATTEMPTS });
        const attempt = attempts.findLast(({ number }) => String(number) === request.params.number);
        if (attempt === undefined)
          throw new Problem('not_found', `The delivery has no attempt ${request.params.number}.`);
        const event = (await loadEvents(pool, [eventIdOfDelivery(id)])).get(eventIdOfDelivery(id));
        const record = await findEndpointRecord(pool, delivery.endpoint_id);
        if (event === undefined || record === null)
          throw new Problem('not_found', 'The payload is not kept any more.');
        const headers = attempt.request_headers;
        for (const [name, value] of Object.entries(headers))
          if (!OURS.has(name)) void reply.header(name, value);
        // The endpoint may have been pinned to another version since.
        const endpoint = { ...resolveEndpoint(record, []), apiVersion: headers[API_VERSION] ?? null };
        return reply
          .header('content-type', headers['content-type'] ?? 'application/json')
          .send(buildBody(endpoint, event, context.publicUrl));
      },
    );
  };
}
