import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { type AdapterOptions, DEFAULT_MAX_BODY_BYTES, rejection } from './raw-body.ts';
import { createVerifier, type RawBody, type VerifiedWebhook } from './verifier.ts';

/** As much of Fastify as is needed. */
interface Request {
  readonly headers: HeadersLike;
  body: unknown;
}
interface Reply {
  code(status: number): Reply;
  header(name: string, value: string): Reply;
  send(payload: string): Reply;
}
interface Scope {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: unknown, body: unknown) => Promise<unknown>,
  ): unknown;
  addHook(name: 'preValidation', hook: (request: unknown, reply: unknown) => Promise<unknown>): unknown;
}

/** Verified webhooks by the request that they came with. */
const verified = new WeakMap<object, VerifiedWebhook>();

/** The webhook of a request, in the routes of a scope with `receiveWebhooks`. */
export function webhookOf<Payload = unknown>(request: object): VerifiedWebhook<Payload> {
  const webhook = verified.get(request);
  if (webhook === undefined) throw new TypeError('receiveWebhooks has not verified this request.');
  return webhook as VerifiedWebhook<Payload>;
}

/**
 * Makes every route of this scope one for webhooks: bodies stay bytes until they are verified, then `request.body` is
 * the payload and `webhookOf(request)` all of it. Call it inside a plugin, so that other routes keep their parsers.
 *
 * @example
 * app.register(async (scope) => {
 *   receiveWebhooks(scope, { secret });
 *   scope.post('/webhooks', async (request) => { … });
 * });
 */
export function receiveWebhooks(scope: Scope, options: AdapterOptions): void {
  const verifier = createVerifier(options);
  const bodyLimit = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit }, async (_request, body) => body);
  scope.addHook('preValidation', async (incoming, outgoing) => {
    const request = incoming as Request;
    const reply = outgoing as Reply;
    try {
      const webhook = await verifier.verify((request.body ?? '') as RawBody, request.headers);
      verified.set(request, webhook);
      request.body = webhook.payload;
      return undefined;
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      options.onRejected?.(error);
      return reply.code(error.status).header('content-type', 'application/json').send(rejection(error));
    }
  });
}
