import type { FastifyPluginAsync } from 'fastify';
import type { ApiContext } from './context.ts';

export function healthRoutes(context: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get('/healthz', async () => ({ status: 'ok' }));
    server.get('/readyz', async (_request, reply) => {
      const missing = await context.notReady();
      if (missing === null) return { status: 'ready' };
      return reply.code(503).header('retry-after', 1).send({ status: 'not_ready', detail: missing });
    });
  };
}
