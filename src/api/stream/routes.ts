/** `GET /v1/stream`: the live tail, as server-sent events, until the client disconnects. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Clock } from '../../domain/clock.ts';
import { idPrefixes, parsePublicId } from '../../domain/ids.ts';
import { invalidField } from '../../domain/problem.ts';
import { nameOfCaller, visibleTenant } from '../../manage/caller.ts';
import type { TailFilter } from '../../telemetry/live-tail/index.ts';
import type { AccessDependencies, LiveTailDependencies } from '../dependencies.ts';
import { idFilter, ListFilters, typeFilter } from '../http/pagination.ts';
import { answerOf } from '../openapi/describe.ts';
import { StreamClient } from './stream-client.ts';
import { StreamClients } from './stream-clients.ts';

const StreamQuery = Type.Object(
  {
    tenant: ListFilters.tenant,
    endpoint_id: idFilter(
      idPrefixes.endpoint,
      'an endpoint id',
      'Selects only attempts of this endpoint, and changes of it.',
    ),
    type: typeFilter('Selects only events of this type.'),
    status: Type.Optional(
      Type.Enum(['delivered', 'retrying', 'dead'], {
        description: 'Selects only attempts after which the delivery had this status.',
      }),
    ),
    outcome: Type.Optional(
      Type.Enum(['delivered', 'retry', 'dead'], { description: 'Selects only attempts with this outcome.' }),
    ),
  },
  { additionalProperties: false },
);
type StreamQuery = Static<typeof StreamQuery>;

const DESCRIPTION = `Messages: \`event.accepted\`, \`attempt\` and \`endpoint\`, with JSON as their data; \`ready\` once
messages of the other processes arrive too; \`sampled\` when messages were left out because there are too many, \`dropped\`
when this client was too slow to read some. It begins now: it has no history, and nothing is sent again.`;

const EXAMPLE = 'event: attempt\ndata: {"delivery_id":"dlv_…","outcome":"delivered","status_code":200}\n\n';

export function streamRoutes(
  { tail, limits }: LiveTailDependencies,
  clock: Clock,
  { authenticator }: AccessDependencies,
): FastifyPluginAsync {
  return async (server) => {
    const clients = new StreamClients(limits, clock, authenticator);
    server.addHook('preClose', (done) => {
      clients.endAll();
      done();
    });

    server.get<{ Querystring: StreamQuery }>(
      '/stream',
      {
        // A HEAD request would never end.
        exposeHeadRoute: false,
        schema: {
          operationId: 'streamEvents',
          summary: 'Live tail: what happens now',
          description: DESCRIPTION,
          tags: ['Statistics'],
          querystring: StreamQuery,
          response: {
            200: answerOf(
              'Server-sent events, until the client or the server closes the connection.',
              'text/event-stream',
              Type.String({ title: 'Stream', examples: [EXAMPLE] }),
            ),
          },
          problems: {
            rate_limited:
              'Too many live tails are open on this server, with this key or with the keys of its tenant, or the key makes too many requests.',
          },
        },
      },
      (request, reply) => {
        const { caller } = request;
        const filter = readFilter(request);
        const key = nameOfCaller(caller);
        const { tenant } = caller;
        clients.checkLimits({ key, tenant });
        reply.hijack();
        const { raw } = reply;
        raw.writeHead(200, {
          ...(reply.getHeaders() as OutgoingHttpHeaders),
          'content-type': 'text/event-stream',
          // Tells nginx and others not to buffer the answer.
          'x-accel-buffering': 'no',
        });
        raw.write('retry: 2000\n\n');
        const client = new StreamClient(raw, filter, limits.bufferBytes);
        clients.add(client, { key, tenant, sender: { headers: request.headers, socket: request.socket } });
        raw.on('error', () => {});
        raw.once('close', () => {
          clients.delete(client);
          tail.leave(client);
        });
        void tail.join(client).then(() => {
          if (clients.has(client)) client.show('event: ready\ndata: {}\n\n', 1);
        });
      },
    );
  };
}

const OUTCOMES = { delivered: 'delivered', retrying: 'retry', dead: 'dead' } as const;

function readFilter({ query, caller }: FastifyRequest<{ Querystring: StreamQuery }>): TailFilter {
  const { endpoint_id, type = null, status, outcome } = query;
  const endpointId = endpoint_id === undefined ? null : parsePublicId(idPrefixes.endpoint, endpoint_id);
  if (endpoint_id !== undefined && endpointId === null)
    throw invalidField('endpoint_id', 'must be an endpoint id (ep_…)');
  const wanted = status === undefined ? outcome : OUTCOMES[status];
  if (outcome !== undefined && wanted !== outcome)
    throw invalidField('outcome', 'contradicts `status`: send only one of the two');
  return { tenant: visibleTenant(caller, query.tenant), endpointId, type, outcome: wanted ?? null };
}
