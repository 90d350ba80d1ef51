import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Probes } from '../../manage/probes.ts';
import type { EndpointCache } from '../../postgres/endpoint-cache.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import { idParams } from '../openapi/describe.ts';

const EndpointId = idParams('ep', 'endpoint');

export function probeRoutes(
  probes: Probes,
  { endpoints }: { readonly endpoints: EndpointCache },
): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Params: Static<typeof EndpointId> }>(
      '/endpoints/:id/probe',
      {
        schema: {
          operationId: 'probeEndpoint',
          summary: 'Send one request to an endpoint now',
          description:
            'Sends the oldest waiting delivery once, even while the circuit is open. If nothing waits, sends a test event. The request waits for the rate limit and for `Retry-After`. A success closes the circuit. A failure leaves the cooldown as it was.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 202: DeliverySchema },
          problems: {
            conflict:
              'The endpoint is disabled, deleted or paused, a dead letter blocks it, or a probe is on its way.',
          },
        },
      },
      async (request, reply) => {
        const id = readObjectId('endpoint', request.params.id);
        const delivery = await probes.request(request, id);
        return reply.code(202).send(showDelivery(delivery, endpoints.get(id), request.caller));
      },
    );
  };
}
