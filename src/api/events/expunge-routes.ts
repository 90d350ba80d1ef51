import type { FastifyPluginAsync } from 'fastify';
import type { Expunge } from '../../manage/expunge.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import { Nothing } from '../openapi/describe.ts';
import { ARCHIVED } from './routes.ts';
import { EventId } from './schema.ts';
import { onceStored, type UnstoredEvents } from './unstored-events.ts';

/** Until when the archive contains what was deleted. */
export const ARCHIVE_UNTIL = 'posthorn-archive-until';
/** Until when Kafka holds records of an expunged tenant. */
export const KAFKA_UNTIL = 'posthorn-kafka-until';

export function expungeRoutes(expunge: Expunge, unstoredEvents: UnstoredEvents | null): FastifyPluginAsync {
  return async (server) => {
    server.delete<{ Params: { id: string } }>(
      '/events/:id/payload',
      {
        schema: {
          operationId: 'expungeEventPayload',
          summary: 'Delete the payload of an event for good',
          description:
            'Deletes `data` and the headers of the event, and the headers and bodies of all its attempts. If it was sent in a batch, the answers to that batch are deleted from the attempts of its other events too. Waiting deliveries end as `skipped`, dead ones as `discarded`, with reason `expunged`. The event and its history stay, with `expunged_at`. It cannot be undone. If the archive contains the event, the header `posthorn-archive-until` says until when.',
          tags: ['Events'],
          params: EventId,
          response: { 204: Nothing },
          problems: { archived: `${ARCHIVED} Only an admin key may delete it there.` },
        },
      },
      async (request, reply) => {
        const id = readObjectId('event', request.params.id);
        const { archiveUntil } = await onceStored(unstoredEvents, id, () => expunge.payload(request, id));
        if (archiveUntil !== null) reply.header(ARCHIVE_UNTIL, new Date(archiveUntil).toISOString());
        return reply.code(204).send();
      },
    );
  };
}
