import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { isReservedHeader } from '../deliver/index.ts';
import { idPrefixes, publicId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { type Accepted, type NewEvent, type ReadContext, readBatch, readEvent } from '../ingest/index.ts';
import type { ApiContext } from './context.ts';

const MAX_BATCH_EVENTS = 1000;
/** The envelope around `data` in a request: type, key, channels, headers. */
const ENVELOPE_BYTES = 64 * 1024;

export function eventRoutes({ acceptor, limits }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Buffer }>(
      '/events',
      { config: { rawBody: true, publishes: true }, bodyLimit: limits.maxEventBytes + ENVELOPE_BYTES },
      async (request, reply) => {
        const event = readEvent(bodyOf(request), limits, readContext(request));
        const accepted = await acceptor.accept(event);
        return reply.code(202).send(showAccepted(accepted));
      },
    );

    server.post<{ Body: Buffer }>(
      '/events/batch',
      { config: { rawBody: true, publishes: true }, bodyLimit: limits.maxBatchBytes },
      async (request, reply) => {
        const items = readBatch(bodyOf(request), limits, readContext(request), MAX_BATCH_EVENTS);
        const results = await Promise.all(
          items.map(async (item: NewEvent | Problem) => {
            try {
              if (item instanceof Problem) throw item;
              return showAccepted(await acceptor.accept(item));
            } catch (error) {
              if (error instanceof Problem) return { error: error.toJSON() };
              throw error;
            }
          }),
        );
        return reply.code(202).send({ results });
      },
    );
  };
}

function bodyOf(request: FastifyRequest): Buffer {
  if (!Buffer.isBuffer(request.body)) {
    throw new Problem('unsupported_media_type', 'Send the event as "content-type: application/json".');
  }
  return request.body;
}

function readContext(request: FastifyRequest): ReadContext {
  const header = request.headers['idempotency-key'];
  return {
    keyTenant: request.caller.tenant,
    idempotencyKey: typeof header === 'string' ? header : null,
    isReservedHeader,
  };
}

function showAccepted(accepted: Accepted) {
  return {
    id: publicId(idPrefixes.event, accepted.id),
    type: accepted.type,
    tenant: accepted.tenant,
    created_at: new Date(accepted.createdAt),
    deliveries: accepted.deliveries,
    duplicate: accepted.duplicate,
  };
}
