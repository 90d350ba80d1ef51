/** `GET /`: leads a browser to the console, and tells everyone else where to go. */
import type { FastifyPluginAsync } from 'fastify';
import { readVersion } from '../config/index.ts';
import type { ApiContext } from './context.ts';

export function rootRoutes(context: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get('/', { schema: { hide: true } }, async (request, reply) => {
      void reply.header('vary', 'accept');
      if (request.headers.accept?.includes('text/html')) return reply.redirect('/console', 302);
      const url = context.publicUrl;
      return {
        name: 'Posthorn',
        version: readVersion(),
        api: `${url}/v1`,
        console: `${url}/console`,
        docs: `${url}/docs`,
        openapi: `${url}/openapi.json`,
        health: `${url}/healthz`,
      };
    });
  };
}
