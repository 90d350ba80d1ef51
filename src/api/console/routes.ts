/** `GET /console…`: static files. Every other address gets the page, which does its own routing. */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../domain/problem.ts';
import { createFileLoader, INDEX, sendFile } from '../http/static-files.ts';

/** Only files from this server: nothing inline, no frames, no forms. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-cache',
};
/** The names of these files contain a hash of their content, so they can be cached for ever. */
const ASSETS = 'assets/';
const FOR_EVER = 'public, max-age=31536000, immutable';

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Posthorn console</title>
<h1>The console has not been built</h1>
<p>Run <code>npm run build:console</code> in the folder of Posthorn, then reload this page. The API works without it.</p>
</html>
`;

export function consoleRoutes(): FastifyPluginAsync {
  const load = createFileLoader('console');
  const serve = async (request: FastifyRequest<{ Params: { '*'?: string } }>, reply: FastifyReply) => {
    const name = request.params['*'] ?? '';
    const built = await load();
    if (built === null)
      return reply
        .code(503)
        .headers({ ...PAGE_HEADERS, 'content-type': 'text/html; charset=utf-8' })
        .send(NOT_BUILT);
    const asset = name === INDEX ? undefined : built.get(name);
    if (asset !== undefined) {
      const cacheControl = name.startsWith(ASSETS) ? FOR_EVER : 'no-cache';
      return sendFile(request, reply.header('cache-control', cacheControl), asset);
    }
    if (name.startsWith(ASSETS)) throw new Problem('not_found', 'The console has no such file.');
    return sendFile(request, reply.headers(PAGE_HEADERS), built.get(INDEX)!);
  };

  return async (server) => {
    server.get('/console', { schema: { hide: true } }, serve);
    server.get('/console/*', { schema: { hide: true } }, serve);
  };
}
