import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { readVersion } from '../../config/index.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { matchesEtag } from '../http/etag.ts';
import { answerOf, Nothing } from './describe.ts';
import { buildDocument } from './document.ts';
import type { DocumentedRoute } from './documented-route.ts';
import { PAGE_POLICY, renderReference } from './reference/page.ts';

/** Collects every route that is registered from now on. HEAD is left out: GET implies it. */
export function collectRoutes(server: FastifyInstance): DocumentedRoute[] {
  const routes: DocumentedRoute[] = [];
  server.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      if (method === 'HEAD' || method === 'OPTIONS' || route.schema?.hide === true) continue;
      // Read lazily: `onRoute` hooks of inner plugins may still add to them.
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

export function openApiRoutes(
  dependencies: Pick<ApiDependencies, 'publicUrl'>,
  routes: readonly DocumentedRoute[],
): FastifyPluginAsync {
  const build = () => buildDocument(routes, { version: readVersion(), serverUrl: dependencies.publicUrl });

  return async (server) => {
    // Build it once at the start, so that a route that cannot be described fails the start and not a request.
    server.addHook('onReady', (done) => {
      build();
      done();
    });
    // Cached at the first request: from then on the public URL is known and does not change.
    const json = buildOnce(() => JSON.stringify(build(), null, 2));
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

    const page = buildOnce(() => renderReference(build()));
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

function buildOnce(make: () => string): () => Cached {
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
  return matchesEtag(request.headers['if-none-match'], etag) ? reply.code(304).send() : reply.send(body);
}
