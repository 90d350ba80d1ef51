/** `ANY /inbox/{token}`: keeps what arrives, and answers as the inbox was told. No key: it is a receiver. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { withoutCredentials } from '../../deliver/index.ts';
import { publicId } from '../../domain/ids.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { type Inboxes, inboxNotFound } from './inboxes.ts';
import { endpointsAt, verifySignature } from './verify.ts';

const MAX_BODY_BYTES = 1024 * 1024;

export function inboxReceiver(context: ApiDependencies, inboxes: Inboxes): FastifyPluginAsync {
  return async (server) => {
    // Whatever comes is shown as it came.
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    server.all<{ Params: { token: string } }>(
      '/inbox/:token',
      { bodyLimit: MAX_BODY_BYTES, schema: { hide: true } },
      async (request, reply) => {
        const inbox = await inboxes.find(request.params.token);
        if (inbox === null) throw inboxNotFound();
        const headers = headersOf(request);
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const url = `${context.publicUrl}/inbox/${inbox.token}`;
        const endpoints = endpointsAt(url, inbox.tenant, context.endpoints.all());
        const { answer } = inbox;
        const number = await inboxes.keep(inbox, {
          method: request.method,
          path: request.url,
          headers: withoutCredentials(headers),
          body,
          signature: verifySignature(endpoints, headers, body, context.clock.now()),
          answered: answer,
        });
        if (answer.delay_ms > 0)
          await new Promise<void>((resolve) => {
            const cancel = context.clock.after(answer.delay_ms, resolve);
            // Nobody waits any more: neither should the timer.
            request.raw.socket.once('close', () => {
              cancel();
              resolve();
            });
          });
        if (answer.reset) {
          reply.hijack();
          request.raw.socket.resetAndDestroy();
          return reply;
        }
        return reply.code(answer.status).send({
          received: number,
          endpoint_ids: endpoints.map(({ id }) => publicId('ep', id)),
        });
      },
    );
  };
}

function headersOf(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}
