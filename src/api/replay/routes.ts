import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import type { Replay } from '../../manage/replay.ts';
import type { EndpointCache } from '../../postgres/endpoint-cache.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import { ARCHIVED } from '../events/routes.ts';
import { onceStored, type UnstoredEvents } from '../events/unstored-events.ts';
import { idParams } from '../openapi/describe.ts';
import { CountSchema, TaskSchema } from '../tasks/schema.ts';
import { sendOrder } from '../tasks/view.ts';
import { EndpointReplay, EventReplay, Replayed } from './schema.ts';

type ById = { Params: { id: string } };

export function replayRoutes(
  replay: Replay,
  endpoints: EndpointCache,
  unstoredEvents: UnstoredEvents | null,
): FastifyPluginAsync {
  return async (server) => {
    server.post<ById>(
      '/deliveries/:id/replay',
      {
        schema: {
          operationId: 'replayDelivery',
          summary: 'Send a delivery again',
          description: 'You can replay a delivery of any status. A waiting delivery becomes due now.',
          tags: ['Deliveries'],
          params: idParams('dlv', 'delivery'),
          response: { 202: DeliverySchema },
          problems: {
            conflict: 'The endpoint is disabled or was deleted.',
            unavailable: 'The delivery is changing at this moment. Try again after `Retry-After` seconds.',
          },
        },
      },
      async (request, reply) => {
        const delivery = await replay.delivery(request, readObjectId('delivery', request.params.id));
        return reply
          .code(202)
          .send(showDelivery(delivery, endpoints.get(delivery.endpoint_id), request.caller));
      },
    );

    server.post<ById & { Body: Static<typeof EventReplay> }>(
      '/events/:id/replay',
      {
        schema: {
          operationId: 'replayEvent',
          summary: 'Send an event again',
          description:
            'Sends all deliveries of the event, or those that match. Deliveries to a disabled or deleted endpoint are skipped, but if you name such an endpoint, nothing is sent. If the event has more than 1,000 deliveries, the task `task_id` sends them in the background, and the counts are estimates. A dry run only counts: its answer is 200.',
          tags: ['Events'],
          params: idParams('evt', 'event'),
          body: EventReplay,
          response: { 200: Replayed, 202: Replayed },
          problems: {
            archived: ARCHIVED,
            conflict:
              'A named endpoint is disabled or deleted, or all endpoints of the matching deliveries are.',
          },
        },
      },
      async (request, reply) => {
        const id = readObjectId('event', request.params.id);
        const { taskId, ...counts } = await onceStored(unstoredEvents, id, () =>
          replay.event(request, id, request.body),
        );
        const task_id = taskId && publicId(idPrefixes.task, taskId);
        return reply.code(request.body.dry_run === true ? 200 : 202).send({ ...counts, task_id });
      },
    );

    server.post<ById & { Body: Static<typeof EndpointReplay> }>(
      '/endpoints/:id/replay',
      {
        schema: {
          operationId: 'replayEndpoint',
          summary: 'Send again what an endpoint missed',
          description:
            'A task sends them in the background. By default it sends deliveries that are dead or were skipped.',
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
