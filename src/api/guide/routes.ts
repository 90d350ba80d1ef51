/** `GET /docs/guide/…`: README and docs as pages with a search, as built by scripts/build-guide.ts. */
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../../domain/problem.ts';
import { createFileLoader, INDEX, sendFile } from '../http/static-files.ts';

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cache-control': 'no-cache',
};

export function guideRoutes(): FastifyPluginAsync {
  const load = createFileLoader('guide');
  const serve = async (request: FastifyRequest<{ Params: { '*': string } }>, reply: FastifyReply) => {
    const files = await load();
    if (files === null)
      throw new Problem(
        'not_found',
        'The guide has not been built. Run `npm run build:guide` in the folder of Posthorn.',
      );
    const file = files.get(request.params['*']);
    if (file === undefined) throw new Problem('not_found', 'The guide has no such page.');
    return sendFile(request, reply.headers(HEADERS), file);
  };
  return async (server) => {
    // Links in the pages are relative to their folder.
    server.get('/docs/guide', { schema: { hide: true } }, (_request, reply) =>
      reply.redirect(`/docs/guide/${INDEX}`, 308),
    );
    server.get('/docs/guide/*', { schema: { hide: true } }, serve);
  };
}
