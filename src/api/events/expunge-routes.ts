import type { FastifyPluginAsync } from 'fastify';
import type { Expunge } from '../../manage/expunge.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import { Nothing } from '../openapi/describe.ts';
import { EventId } from './schema.ts';

export function expungeRoutes(expunge: Expunge): FastifyPluginAsync {
  return async (server) => {
    server.delete<{ Params: { id: string } }>(
      '/events/:id/payload',
      {
        schema: {
          operationId: 'expungeEventPayload',
          summary: 'Delete the payload of an event for good',
          description:
            'Deletes `data` and the headers of the event, and the headers and bodies of all its attempts. Waiting deliveries end as `skipped`, dead ones as `discarded`, with reason `expunged`. The event and its history stay, with `expunged_at`. It cannot be undone.',
          tags: ['Events'],
          params: EventId,
          response: { 204: Nothing },
        },
      },
      async (request, reply) => {
        await expunge.payload(request, readObjectId('event', request.params.id));
        return reply.code(204).send();
      },
    );
  };
}
