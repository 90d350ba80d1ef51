/** `GET /console…`: static files. Every other address gets the page, which does its own routing. */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../domain/problem.ts';
import { createFileLoader, INDEX, sendFile } from '../http/static-files.ts';

/** Only files from this server: nothing inline, no forms, and frames only on pages of the given origins. */
const contentSecurityPolicy = (frameOrigins: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameOrigins.length === 0 ? "'none'" : frameOrigins.join(' ')}`,
  ].join('; ');

const pageHeaders = (frameOrigins: readonly string[]) => ({
  'content-security-policy': contentSecurityPolicy(frameOrigins),
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-cache',
});
/** The names of these files contain a hash of their content, so they can be cached forever. */
const ASSETS = 'assets/';
const FOR_EVER = 'public, max-age=31536000, immutable';

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Posthorn console</title>
<h1>The console has not been built</h1>
<p>Run <code>npm run build:console</code> in the folder of Posthorn, then reload this page. The API works without it.</p>
</html>
`;

/** `portalOrigins`: pages of these origins may show the console in a frame. */
export function consoleRoutes(portalOrigins: readonly string[]): FastifyPluginAsync {
  const headers = pageHeaders(portalOrigins);
  const load = createFileLoader('console');
  const serve = async (request: FastifyRequest<{ Params: { '*'?: string } }>, reply: FastifyReply) => {
    const name = request.params['*'] ?? '';
    const built = await load();
    if (built === null)
      return reply
        .code(503)
        .headers({ ...headers, 'content-type': 'text/html; charset=utf-8' })
        .send(NOT_BUILT);
    const asset = name === INDEX ? undefined : built.get(name);
    if (asset !== undefined) {
      const cacheControl = name.startsWith(ASSETS) ? FOR_EVER : 'no-cache';
      return sendFile(request, reply.header('cache-control', cacheControl), asset);
    }
    if (name.startsWith(ASSETS)) throw new Problem('not_found', 'The console has no such file.');
    return sendFile(request, reply.headers(headers), built.get(INDEX)!);
  };

  return async (server) => {
    server.get('/console', { schema: { hide: true } }, serve);
    server.get('/console/*', { schema: { hide: true } }, serve);
  };
}
