import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Problem } from '../../domain/problem.ts';
import { CONTENT_TYPE } from '../../telemetry/metrics/index.ts';
import type { ApiContext } from '../dependencies.ts';
import type { IsTrustedProxy } from '../http/client-address.ts';

const Text = Type.String({ title: 'Metrics', examples: ['posthorn_in_flight 3\n'] });
const DESCRIPTION = {
  operationId: 'getMetrics',
  summary: 'Metrics for Prometheus',
  description:
    'Of all processes of this node. Open to requests from the machine itself; from elsewhere with an admin key, or a read key of no tenant.',
  tags: ['Service'],
  response: {
    200: { description: 'Metrics', content: { 'text/plain': { schema: Text } } },
  },
  problems: {
    unauthorized: 'From elsewhere, without a key.',
    forbidden: 'The key is for one tenant only.',
    not_found: 'Metrics are switched off.',
    rate_limited: 'From elsewhere: the key makes too many requests.',
  },
} as const;

/** Open to whoever is on this machine; from elsewhere with a key that may see all tenants. */
export function metricsRoutes({ metrics, authenticator, isTrustedProxy }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get('/metrics', { schema: DESCRIPTION }, async (request, reply) => {
      if (metrics === null)
        throw new Problem('not_found', 'Metrics are switched off (POSTHORN_METRICS=off).');
      if (!comesFromThisMachine(request, isTrustedProxy)) {
        const caller = await authenticator.authenticate(request.headers.authorization);
        if (caller.scope === 'tenant' || caller.tenant !== null)
          throw new Problem(
            'forbidden',
            'Metrics are of all tenants: use an admin key, or a read key of no tenant.',
          );
      }
      return reply.header('content-type', CONTENT_TYPE).send(await metrics.text());
    });
  };
}

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'];

/** A proxy on this machine speaks for others: what it hands on is not from here. */
function comesFromThisMachine({ socket, headers }: FastifyRequest, isTrustedProxy: IsTrustedProxy): boolean {
  const address = socket.remoteAddress ?? '';
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address);
  // Not every proxy says that it is one. One that is named in the settings need not.
  if (!isLoopback || isTrustedProxy(address)) return false;
  // A page that had its own name resolved to this machine would send that name.
  const isNamedAsThisMachine = /^(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/i.test(headers.host ?? '');
  return isNamedAsThisMachine && FORWARDED.every((name) => headers[name] === undefined);
}
