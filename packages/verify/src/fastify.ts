import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { type AdapterOptions, buildRejectionBody, DEFAULT_MAX_BODY_BYTES } from './raw-body.ts';
import { createVerifier, type RawBody, type VerifiedWebhook } from './verifier.ts';

/** The parts of Fastify that the adapter uses. */
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

/** The verified webhook of each request. */
const webhooks = new WeakMap<object, VerifiedWebhook>();

/** Returns the webhook of a request. Throws a TypeError if its scope does not use `receiveWebhooks`. */
export function webhookOf<Payload = unknown>(request: object): VerifiedWebhook<Payload> {
  const webhook = webhooks.get(request);
  if (webhook === undefined)
    throw new TypeError('This request was not verified. Call receiveWebhooks in the scope of this route.');
  return webhook as VerifiedWebhook<Payload>;
}

/**
 * Verifies the requests of every route in this scope. After verification `request.body` is the payload, and
 * `webhookOf(request)` returns the webhook. Call it inside a plugin: it removes the body parsers of its scope.
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
      webhooks.set(request, webhook);
      request.body = webhook.payload;
      return undefined;
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      options.onRejected?.(error);
      return reply
        .code(error.status)
        .header('content-type', 'application/json')
        .send(buildRejectionBody(error));
    }
  });
}
