import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { isReservedHeader } from '../../deliver/index.ts';
import { Problem } from '../../domain/problem.ts';
import { readTraceContext } from '../../domain/trace-context.ts';
import { ENVELOPE_BYTES, type NewEvent, type ReadContext, readBatch, readEvent } from '../../ingest/index.ts';
import { isOutage } from '../../postgres/failures.ts';
import type { ApiMetrics, PublishingDependencies } from '../dependencies.ts';
import { toProblem } from '../http/problem-answers.ts';
import {
  AcceptedBatch,
  AcceptedEvent,
  MAX_BATCH_EVENTS,
  NewBatch,
  NewEvent as NewEventSchema,
  PublishHeaders,
} from './publish-schema.ts';
import { showAcceptAnswer } from './view.ts';

export function publishRoutes(
  { acceptor, limits }: PublishingDependencies,
  metrics: ApiMetrics | null,
): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Buffer }>(
      '/events',
      {
        schema: {
          operationId: 'publishEvent',
          summary: 'Publish an event',
          description:
            'A 202 means that the event is stored and will be delivered. With an idempotency key it can be sent again safely: the answer is the same, with `duplicate: true`.',
          tags: ['Events'],
          response: { 202: AcceptedEvent },
          problems: {
            conflict: 'The data of the tenant is being deleted.',
            payload_invalid: 'The payload does not match the catalogue, and its type or tenant is `strict`.',
            idempotency_conflict: 'The idempotency key was used for another event.',
            rate_limited:
              'The tenant publishes faster, or the key makes more requests, than its limit allows. Try again after `Retry-After` seconds.',
            overloaded: 'Too many events wait to be accepted. Try again after `Retry-After` seconds.',
            unavailable: 'The database does not answer. Try again after `Retry-After` seconds.',
          },
        },
        config: {
          rawBody: true,
          publishes: true,
          documents: { body: NewEventSchema, headers: PublishHeaders },
        },
        bodyLimit: limits.maxEventBytes + ENVELOPE_BYTES,
      },
      async (request, reply) => {
        const event = readEvent(bodyOf(request), limits, readContext(request));
        const answer = await acceptor.accept(event);
        return reply.code(202).send(showAcceptAnswer(answer));
      },
    );

    server.post<{ Body: Buffer }>(
      '/events/batch',
      {
        schema: {
          operationId: 'publishBatch',
          summary: 'Publish many events',
          description:
            'Each event is accepted or refused on its own; the results are in the order of the events.',
          tags: ['Events'],
          response: { 202: AcceptedBatch },
        },
        config: { rawBody: true, publishes: true, documents: { body: NewBatch, headers: PublishHeaders } },
        bodyLimit: limits.maxBatchBytes,
      },
      async (request, reply) => {
        const items = await readBatch(bodyOf(request), limits, readContext(request), MAX_BATCH_EVENTS);
        const results = await Promise.all(
          items.map(async (item: NewEvent | Problem) => {
            try {
              if (item instanceof Problem) throw item;
              return showAcceptAnswer(await acceptor.accept(item));
            } catch (error) {
              // The other events may be stored already, so one that is refused does not fail the batch. A bug does.
              if (!(error instanceof Problem || isOutage(error))) throw error;
              const problem = toProblem(error as Error);
              metrics?.onRejected(problem.code);
              return { error: problem.toJSON() };
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
    trace: readTraceContext(request.headers.traceparent, request.headers.tracestate),
  };
}
