import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { deliveryIdOf, idPrefixes, newEventId, publicId } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { readTestEvent } from '../../ingest/index.ts';
import { inTransaction } from '../../postgres/database.ts';
import { findDelivery } from '../../postgres/queries/deliveries.ts';
import { findEndpoint } from '../../postgres/queries/endpoints.ts';
import { insertTestEvent } from '../../postgres/queries/events.ts';
import { DeliverySchema, showDelivery } from '../deliveries/view.ts';
import type { ApiContext } from '../dependencies.ts';
import { ENVELOPE_BYTES } from '../events/publish-routes.ts';
import { idParams } from '../openapi/describe.ts';
import { endpointId, endpointNotFound } from './routes.ts';

const TestEvent = Type.Object(
  { type: Type.Optional(Type.String({ maxLength: 128 })), data: Type.Optional(Type.Unknown()) },
  {
    additionalProperties: false,
    title: 'TestEvent',
    examples: [{ type: 'order.created', data: { order_id: 1001 } }],
  },
);
const EndpointId = idParams('ep', 'endpoint');

/** Reserved, so that it cannot be taken for anything that happened. */
const TEST_TYPE = 'posthorn.test';
const TEST_DATA = '{"message":"This is a test event."}';

/** `data` is the caller's own JSON text, byte for byte. */
interface ReadTestEvent {
  readonly type: string;
  readonly data: string;
}

/** An event for one endpoint only, whatever it subscribes to: to see whether it arrives. */
export function testEventRoutes({ pool, clock, limits, endpoints, wake }: ApiContext): FastifyPluginAsync {
  /** Where a schema would do it: what is wrong is refused before the request counts as carried out. */
  async function readBody(request: FastifyRequest): Promise<void> {
    const { body } = request;
    const given = Buffer.isBuffer(body) && body.length > 0 ? body : Buffer.from('{}');
    const { type, data } = readTestEvent(given, limits);
    request.body = { type: type ?? TEST_TYPE, data: data?.toString() ?? TEST_DATA } satisfies ReadTestEvent;
  }

  return async (server) => {
    server.post<{ Params: Static<typeof EndpointId>; Body: ReadTestEvent }>(
      '/endpoints/:id/test',
      {
        schema: {
          operationId: 'sendTestEvent',
          summary: 'Send a test event to an endpoint',
          description: 'To this endpoint only, whatever it subscribes to.',
          tags: ['Endpoints'],
          params: EndpointId,
          response: { 202: DeliverySchema },
          problems: { conflict: 'The endpoint is disabled.' },
        },
        config: { rawBody: true, documents: { body: TestEvent } },
        bodyLimit: limits.maxEventBytes + ENVELOPE_BYTES,
        preValidation: readBody,
      },
      async (request, reply) => {
        const endpoint = await findEndpoint(pool, endpointId(request.params.id), request.caller.tenant);
        if (endpoint === null) throw endpointNotFound(request.params.id);
        const { type, data } = request.body;
        const id = newEventId(clock.now());
        const deliveryId = deliveryIdOf(id, 0);
        await inTransaction(pool, async (client) => {
          const inserted = await insertTestEvent(client, {
            id,
            deliveryId,
            endpointId: endpoint.id,
            tenant: endpoint.tenant,
            type,
            data: Buffer.from(data),
            options: { endpoint_ids: [endpoint.id] },
          });
          if (!inserted) throw new Problem('conflict', 'The endpoint is disabled. Enable it first.');
          await request.audit.record(client, {
            tenant: endpoint.tenant,
            objectId: request.params.id,
            changes: [{ field: 'event', after: publicId(idPrefixes.event, id) }],
          });
        });
        wake(endpoint.id);
        const view = (await findDelivery(pool, deliveryId, endpoint.tenant))!;
        return reply.code(202).send(showDelivery(view, endpoints.get(endpoint.id)));
      },
    );
  };
}
