import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Replay } from '../../manage/replay.ts';
import type { EndpointCache } from '../../postgres/endpoint-cache.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import { idParams } from '../openapi/describe.ts';
import { CountSchema, TaskSchema } from '../tasks/schema.ts';
import { sendOrder } from '../tasks/view.ts';
import { EndpointReplay, EventReplay, Replayed } from './schema.ts';

type ById = { Params: { id: string } };

export function replayRoutes(replay: Replay, endpoints: EndpointCache): FastifyPluginAsync {
  return async (server) => {
    server.post<ById>(
      '/deliveries/:id/replay',
      {
        schema: {
          operationId: 'replayDelivery',
          summary: 'Send a delivery again',
          description: 'Whatever its status. One that waits becomes due now.',
          tags: ['Deliveries'],
          params: idParams('dlv', 'delivery'),
          response: { 202: DeliverySchema },
          problems: {
            conflict: 'The endpoint is disabled or was deleted.',
            unavailable: 'The delivery is just being moved. Try again after `Retry-After` seconds.',
          },
        },
      },
      async (request, reply) => {
        const delivery = await replay.delivery(request, readObjectId('delivery', request.params.id));
        return reply.code(202).send(showDelivery(delivery, endpoints.get(delivery.endpoint_id)));
      },
    );

    server.post<ById & { Body: Static<typeof EventReplay> }>(
      '/events/:id/replay',
      {
        schema: {
          operationId: 'replayEvent',
          summary: 'Send an event again',
          description:
            'All of its deliveries, or those that fit. Those of an endpoint that is disabled or was deleted are left out, unless you name it: then nothing is sent again.',
          tags: ['Events'],
          params: idParams('evt', 'event'),
          body: EventReplay,
          response: { 202: Replayed },
          problems: {
            conflict:
              'An endpoint that is named is disabled or was deleted; or that is so of all endpoints of the deliveries that fit.',
          },
        },
      },
      async (request, reply) => {
        const id = readObjectId('event', request.params.id);
        return reply.code(202).send(await replay.event(request, id, request.body));
      },
    );

    server.post<ById & { Body: Static<typeof EndpointReplay> }>(
      '/endpoints/:id/replay',
      {
        schema: {
          operationId: 'replayEndpoint',
          summary: 'Send again what an endpoint did not get',
          description: 'In the background. By default what is dead or was skipped.',
          tags: ['Endpoints'],
          params: idParams('ep', 'endpoint'),
          body: EndpointReplay,
          response: { 200: CountSchema, 202: TaskSchema },
          problems: { conflict: 'The endpoint is disabled.' },
        },
      },
      async (request, reply) => {
        const id = readObjectId('endpoint', request.params.id);
        return sendOrder(reply, await replay.endpoint(request, id, request.body));
      },
    );
  };
}
