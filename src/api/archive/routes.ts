import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Archive } from '../../manage/archive.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import { exampleId, Id } from '../openapi/describe.ts';
import { TaskSchema } from '../tasks/schema.ts';
import { sendOrder } from '../tasks/view.ts';

const RestoreBody = Type.Object(
  {
    event_id: Type.Optional(Id('evt')),
    day: Type.Optional(
      Type.String({
        pattern: '^\\d{4}-\\d{2}-\\d{2}$',
        description: 'Restores everything of this day (UTC), such as `2026-11-15`.',
      }),
    ),
  },
  {
    title: 'ArchiveRestore',
    additionalProperties: false,
    examples: [{ event_id: exampleId('evt') }, { day: '2026-11-15' }],
  },
);

export function archiveRoutes(archive: Archive): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof RestoreBody> }>(
      '/archive/restore',
      {
        schema: {
          operationId: 'restoreArchived',
          summary: 'Bring a day or one event back from the archive',
          description:
            'Posthorn restores the events with their deliveries and attempts, for `POSTHORN_RESTORE_DAYS` days. Expunged data is not restored.',
          tags: ['Service'],
          body: RestoreBody,
          response: { 202: TaskSchema },
          problems: {
            not_found: 'Nothing of that day is in the archive.',
            conflict: 'The server has no archive.',
          },
        },
        config: { admin: true },
      },
      async (request, reply) => {
        const { event_id, day = null } = request.body;
        const eventId = event_id === undefined ? null : readObjectId('event', event_id);
        return sendOrder(reply, { task: await archive.restore(request, { eventId, day }) });
      },
    );
  };
}
