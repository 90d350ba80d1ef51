/** `GET /` redirects browsers to the console and tells other clients where to find what. */
import type { FastifyPluginAsync } from 'fastify';
import { readVersion } from '../../config/index.ts';
import type { ApiDependencies } from '../dependencies.ts';

export function rootRoutes(dependencies: Pick<ApiDependencies, 'publicUrl'>): FastifyPluginAsync {
  return async (server) => {
    server.get('/', { schema: { hide: true } }, async (request, reply) => {
      void reply.header('vary', 'accept');
      if (request.headers.accept?.includes('text/html')) return reply.redirect('/console', 302);
      // Read per request: with port 0 the URL is only known once the server listens.
      const url = dependencies.publicUrl;
      return {
        name: 'Posthorn',
        version: readVersion(),
        api: `${url}/v1`,
        console: `${url}/console`,
        docs: `${url}/docs`,
        guide: `${url}/docs/guide`,
        openapi: `${url}/openapi.json`,
        health: `${url}/healthz`,
      };
    });
  };
}
