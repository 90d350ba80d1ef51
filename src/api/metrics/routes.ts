import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Problem } from '../../domain/problem.ts';
import { CONTENT_TYPE } from '../../telemetry/metrics/index.ts';
import type { AccessDependencies, ApiMetrics } from '../dependencies.ts';
import type { IsTrustedProxy } from '../http/client-address.ts';
import { checkScopes, scopesNeededBy } from '../http/route-scopes.ts';

const Text = Type.String({ title: 'Metrics', examples: ['posthorn_in_flight 3\n'] });
const DESCRIPTION = {
  operationId: 'getMetrics',
  summary: 'Metrics for Prometheus',
  description:
    'The metrics of all processes of this node. Requests from the machine itself need no key; others need an admin key, or a read key without a tenant. `POSTHORN_METRICS_ACCESS` changes this, and `POSTHORN_METRICS_ADDR` moves it to another address.',
  tags: ['Service'],
  response: {
    200: { description: 'Metrics', content: { 'text/plain': { schema: Text } } },
  },
  problems: {
    unauthorized: 'A request that needs a key has none.',
    forbidden: 'The key is for one tenant only.',
    not_found: 'Metrics are switched off, or served at another address.',
    rate_limited: 'The key makes too many requests.',
  },
} as const;

/** By default open to requests from this machine. Others need a key that may see all tenants. */
export function metricsRoutes(
  metrics: ApiMetrics | null,
  { authenticator, isTrustedProxy, metricsAccess }: AccessDependencies,
): FastifyPluginAsync {
  return async (server) => {
    server.get('/metrics', { schema: DESCRIPTION }, async (request, reply) => {
      if (metrics === null)
        throw new Problem('not_found', 'Metrics are switched off (POSTHORN_METRICS=off).');
      const isOpen =
        metricsAccess === 'open' ||
        (metricsAccess === 'auto' && comesFromThisMachine(request, isTrustedProxy));
      if (!isOpen) {
        const caller = await authenticator.authenticate(request);
        if (caller.scope === 'tenant' || caller.tenant !== null)
          throw new Problem(
            'forbidden',
            'Metrics cover all tenants: use an admin key, or a read key without a tenant.',
          );
        checkScopes(caller, scopesNeededBy(DESCRIPTION.operationId));
      }
      return reply.header('content-type', CONTENT_TYPE).send(await metrics.text());
    });
  };
}

/** Headers that proxies and load balancers add. One is enough. */
const FORWARDED =
  /^(?:forwarded|via|x-forwarded(?:-.*)?|x-real-ip|x-original-.*|x-envoy-.*|x-(?:cluster-)?client-ip|(?:cf|fastly|true)-(?:connecting|client)-ip|x-amzn-trace-id|cdn-loop|proxy-.*)$/;

/** False for a request that a proxy on this machine forwards, because its client is elsewhere. */
function comesFromThisMachine({ socket, headers }: FastifyRequest, isTrustedProxy: IsTrustedProxy): boolean {
  const address = socket.remoteAddress ?? '';
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address);
  // Not every proxy adds a header; those in POSTHORN_TRUSTED_PROXIES are recognized by their address.
  if (!isLoopback || isTrustedProxy(address)) return false;
  // DNS rebinding: a web page whose name resolves to this machine sends that name as the host.
  const isNamedAsThisMachine = /^(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/i.test(headers.host ?? '');
  return isNamedAsThisMachine && !Object.keys(headers).some((name) => FORWARDED.test(name));
}
