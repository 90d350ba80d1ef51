import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { readVersion } from '../../config/index.ts';
import type { ApiContext } from '../dependencies.ts';
import { answerOf, Nothing } from './describe.ts';
import { buildDocument } from './document.ts';
import type { DocumentedRoute } from './documented-route.ts';
import { PAGE_POLICY, renderReference } from './reference/page.ts';

/** Remembers every route that is registered from now on. HEAD is implied by GET, unless that says otherwise. */
export function collectRoutes(server: FastifyInstance): DocumentedRoute[] {
  const routes: DocumentedRoute[] = [];
  server.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      if (method === 'HEAD' || method === 'OPTIONS' || route.schema?.hide === true) continue;
      // Read later: hooks of inner plugins may still add to them.
      routes.push({
        method,
        url: route.url,
        noHead: route.exposeHeadRoute === false,
        get schema() {
          return route.schema ?? {};
        },
        get config() {
          return route.config ?? {};
        },
      });
    }
  });
  return routes;
}

export function openApiRoutes(context: ApiContext, routes: readonly DocumentedRoute[]): FastifyPluginAsync {
  const build = () => buildDocument(routes, { version: readVersion(), serverUrl: context.publicUrl });

  return async (server) => {
    // Once, before anybody asks: routes that cannot be described should not be found out by a user.
    server.addHook('onReady', (done) => {
      build();
      done();
    });
    // The public URL is known when the server listens, and does not change any more.
    const json = cached(() => JSON.stringify(build(), null, 2));
    server.get(
      '/openapi.json',
      {
        schema: {
          operationId: 'getOpenApiDocument',
          summary: 'This API as an OpenAPI 3.1 document',
          tags: ['Service'],
          response: { 200: Type.Object({}, { title: 'OpenApiDocument' }), 304: Nothing },
        },
      },
      async (request, reply) => sendCached(request, reply.type('application/json; charset=utf-8'), json()),
    );

    const page = cached(() => renderReference(build()));
    server.get(
      '/docs',
      {
        schema: {
          operationId: 'getApiReference',
          summary: 'This API as a page to read',
          tags: ['Service'],
          response: { 200: answerOf('The page.', 'text/html', Type.String()), 304: Nothing },
        },
      },
      async (request, reply) =>
        sendCached(
          request,
          reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY),
          page(),
        ),
    );
  };
}

interface Cached {
  readonly body: Buffer;
  readonly etag: string;
}

function cached(make: () => string): () => Cached {
  let made: Cached | undefined;
  return () => {
    if (made === undefined) {
      const body = Buffer.from(make());
      made = { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
    }
    return made;
  };
}

function sendCached(request: FastifyRequest, reply: FastifyReply, { body, etag }: Cached): FastifyReply {
  void reply.header('etag', etag).header('cache-control', 'no-cache');
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(body);
}
