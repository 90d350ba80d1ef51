import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { MAX_EVENT_TYPE_LENGTH, PUBLISHED_TYPE } from '../../domain/event.ts';
import { ENVELOPE_BYTES, readTestEvent } from '../../ingest/index.ts';
import { readObjectId } from '../../manage/object-ids.ts';
import {
  DEFAULT_TEST_EVENT,
  type TestEvent as TestEventInput,
  type TestEvents,
} from '../../manage/test-events.ts';
import type { EndpointCache } from '../../postgres/endpoint-cache.ts';
import { DeliverySchema } from '../deliveries/schema.ts';
import { showDelivery } from '../deliveries/view.ts';
import type { PublishLimits } from '../dependencies.ts';
import { checkScopes } from '../http/route-scopes.ts';
import { idParams } from '../openapi/describe.ts';

const TestEvent = Type.Object(
  {
    type: Type.Optional(Type.String({ maxLength: MAX_EVENT_TYPE_LENGTH, pattern: PUBLISHED_TYPE.source })),
    data: Type.Optional(Type.Unknown()),
  },
  {
    additionalProperties: false,
    title: 'TestEvent',
    examples: [{ type: 'order.created', data: { order_id: 1001 } }],
  },
);
const EndpointId = idParams('ep', 'endpoint');

export function testEventRoutes(
  testEvents: TestEvents,
  { endpoints, limits }: { readonly endpoints: EndpointCache; readonly limits: PublishLimits },
): FastifyPluginAsync {
  /** Reads the body before the handler, as a schema would: an invalid one must not use up an idempotency key. */
  async function readBody(request: FastifyRequest): Promise<void> {
    const { body } = request;
    const bytes = Buffer.isBuffer(body) && body.length > 0 ? body : Buffer.from('{}');
    const { type, data } = readTestEvent(bytes, limits);
    // A receiver that ignores `posthorn-test` takes a signed test event of a real type for a real event.
    if (type !== null || data !== null) checkScopes(request.caller, ['events:publish']);
    request.body = {
      type: type ?? DEFAULT_TEST_EVENT.type,
      data: data?.toString() ?? DEFAULT_TEST_EVENT.data,
    } satisfies TestEventInput;
  }

  return async (server) => {
    server.post<{ Params: Static<typeof EndpointId>; Body: TestEventInput }>(
      '/endpoints/:id/test',
      {
        schema: {
          operationId: 'sendTestEvent',
          summary: 'Send a test event to an endpoint',
          description:
            'The event goes to this endpoint only, whatever it subscribes to. It is sent even while the circuit is open, unless a probe is on its way or (FIFO) other deliveries wait before it. The request has the header `posthorn-test: true`. With `type` or `data`, a key with `scopes` also needs `events:publish`.',
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
        const id = readObjectId('endpoint', request.params.id);
        const delivery = await testEvents.send(request, id, request.body);
        return reply.code(202).send(showDelivery(delivery, endpoints.get(id), request.caller));
      },
    );
  };
}
