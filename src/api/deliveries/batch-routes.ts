import type { FastifyPluginAsync } from 'fastify';
import { Type } from 'typebox';
import { eventIdOfDelivery, idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import { findBatchMembers } from '../../postgres/queries/batches.ts';
import { endpointExisted } from '../../postgres/queries/endpoints.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { EXAMPLE_TIME, exampleId, Id, idParams, type Shown, Time } from '../openapi/describe.ts';

const BatchId = idParams('bat', 'batch');

const SentBatch = Type.Object(
  {
    id: Id('bat'),
    endpoint_id: Id('ep'),
    created_at: Time,
    deliveries: Type.Array(Type.Object({ id: Id('dlv'), event_id: Id('evt') }), {
      description: 'The deliveries that the request carried, in the order of its body.',
    }),
  },
  {
    title: 'SentBatch',
    examples: [
      {
        id: exampleId('bat'),
        endpoint_id: exampleId('ep'),
        created_at: EXAMPLE_TIME,
        deliveries: [{ id: exampleId('dlv'), event_id: exampleId('evt') }],
      },
    ],
  },
);

export function batchRoutes({ pool }: Pick<ApiDependencies, 'pool'>): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: { id: string } }>(
      '/batches/:id',
      {
        schema: {
          operationId: 'getBatch',
          summary: 'Show a batch',
          description:
            'Shows the deliveries that a batch carried. Its composition never changes: a retry with other events has another id. Posthorn keeps batches as long as attempts.',
          tags: ['Deliveries'],
          params: BatchId,
          response: { 200: SentBatch },
        },
      },
      async ({ params, caller }): Promise<Shown<typeof SentBatch>> => {
        const id = readObjectId('batch', params.id);
        const batch = await findBatchMembers(pool, id);
        if (batch === null || !(await endpointExisted(pool, batch.endpointId, caller.tenant)))
          throw notFound('batch', id);
        return {
          id: publicId(idPrefixes.batch, id),
          endpoint_id: publicId(idPrefixes.endpoint, batch.endpointId),
          created_at: new Date(timeOfId(id)),
          deliveries: batch.deliveryIds.map((deliveryId) => ({
            id: publicId(idPrefixes.delivery, deliveryId),
            event_id: publicId(idPrefixes.event, eventIdOfDelivery(deliveryId)),
          })),
        };
      },
    );
  };
}
