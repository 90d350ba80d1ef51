/** `ANY /inbox/{token}`: stores the request and gives the configured answer. Needs no key, because it is a receiver. */
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { type HeaderRedaction, redactHeaders, redactionOf } from '../../deliver/index.ts';
import type { Endpoint } from '../../domain/endpoint.ts';
import { Gate } from '../../domain/gate.ts';
import { publicId } from '../../domain/ids.ts';
import { Problem } from '../../domain/problem.ts';
import { type InboxAnswer, type Inboxes, inboxNotFound } from '../../manage/inboxes.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { verifySignature } from './verify.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** Anyone who knows a token can send requests: they get few of the connections that the API needs too. */
const MAX_STORING = 2;
const MAX_WAITING = 200;

export function inboxReceiver(context: ApiDependencies, inboxes: Inboxes): FastifyPluginAsync {
  const gate = new Gate({ maxRunning: MAX_STORING, maxWaiting: MAX_WAITING });
  return async (server) => {
    // Accept every content type: the body is shown as it arrived.
    server.removeAllContentTypeParsers();
    server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    server.all<{ Params: { token: string } }>(
      '/inbox/:token',
      { bodyLimit: MAX_BODY_BYTES, schema: { hide: true } },
      async (request, reply) => {
        const stored = await gate.run(() => store(context, inboxes, request));
        if (stored === null)
          throw new Problem('overloaded', 'The inboxes receive more requests than they can store.', {
            retryAfterSeconds: 1,
          });
        const { answer, number, endpointIds } = stored;
        if (answer.delay_ms > 0)
          await new Promise<void>((resolve) => {
            const cancel = context.clock.after(answer.delay_ms, resolve);
            // The client is gone, so stop the timer.
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
          endpoint_ids: endpointIds,
        });
      },
    );
  };
}

interface Stored {
  readonly answer: InboxAnswer;
  readonly number: number;
  readonly endpointIds: readonly string[];
}

async function store(
  context: ApiDependencies,
  inboxes: Inboxes,
  request: FastifyRequest<{ Params: { token: string } }>,
): Promise<Stored> {
  const inbox = await inboxes.find(request.params.token);
  if (inbox === null) throw inboxNotFound();
  const headers = headersOf(request);
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const endpoints = [...context.endpoints.atInbox(inbox.token)].filter(
    ({ tenant }) => tenant === inbox.tenant,
  );
  const { answer } = inbox;
  const number = await inboxes.keep(inbox, {
    method: request.method,
    path: request.url,
    headers: redactHeaders(headers, redactionOfAll(endpoints)),
    body,
    signature: verifySignature(endpoints, {
      headers,
      body,
      publicUrl: context.publicUrl,
      nowMs: context.clock.now(),
    }),
    answered: answer,
  });
  return { answer, number, endpointIds: endpoints.map(({ id }) => publicId('ep', id)) };
}

/** A header is shown only if every endpoint that sends it to this inbox names it in `plain_headers`. */
function redactionOfAll(endpoints: readonly Endpoint[]): HeaderRedaction {
  const each = endpoints.map(redactionOf);
  const hidden = new Set(each.flatMap((redaction) => [...redaction.hidden]));
  return { hidden, plain: new Set(each.flatMap(({ plain }) => [...plain])) };
}

function headersOf(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );
}
