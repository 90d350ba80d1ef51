import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { type AdapterOptions, buildRejectionBody, DEFAULT_MAX_BODY_BYTES, readAll } from './raw-body.ts';
import { createVerifier, type RawBody, type VerifiedWebhook } from './verifier.ts';

/** The parts of Express (or Connect, or plain Node) that the middleware uses. */
interface Incoming extends AsyncIterable<Uint8Array | string> {
  readonly headers: HeadersLike;
  readonly readableEnded?: boolean;
  body?: unknown;
}
interface Outgoing {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}

/** The verified webhook of each request. */
const webhooks = new WeakMap<object, VerifiedWebhook>();

/** Returns the webhook of a request. Throws a TypeError if `verifyWebhook` did not verify it. */
export function webhookOf<Payload = unknown>(request: object): VerifiedWebhook<Payload> {
  const webhook = webhooks.get(request);
  if (webhook === undefined)
    throw new TypeError('This request was not verified. Put verifyWebhook before this handler.');
  return webhook as VerifiedWebhook<Payload>;
}

/**
 * Middleware for one route. Handlers after it get the webhook with `webhookOf(request)`. It works without a body parser
 * and after `express.raw()`, but not after `express.json()`, which discards the bytes of the body.
 *
 * @example
 * app.post('/webhooks', verifyWebhook({ secret }), (request, response) => {
 *   const { id, payload } = webhookOf(request);
 * });
 */
export function verifyWebhook(
  options: AdapterOptions,
): (request: Incoming, response: Outgoing, next: (error?: unknown) => void) => void {
  const verifier = createVerifier(options);
  const maxBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
  return (request, response, next) => {
    const reject = (error: unknown): void => {
      if (!(error instanceof VerificationError)) return next(error);
      options.onRejected?.(error);
      response.statusCode = error.status;
      response.setHeader('content-type', 'application/json');
      // The rest of the body is not read, so the connection cannot be reused.
      if (error.reason === 'body_too_large') response.setHeader('connection', 'close');
      response.end(buildRejectionBody(error));
    };
    readRawBody(request, maxBytes)
      .then((body) => verifier.verify(body, request.headers))
      .then((webhook) => {
        webhooks.set(request, webhook);
        // Outside of the promise chain, so that an error of the next handler does not end up here.
        queueMicrotask(next);
      }, reject);
  };
}

async function readRawBody(request: Incoming, maxBytes: number): Promise<RawBody> {
  const { body } = request;
  if (body instanceof Uint8Array || typeof body === 'string') {
    if (body.length > maxBytes) throw new VerificationError('body_too_large', `Allowed: ${maxBytes} bytes.`);
    return body;
  }
  if (body !== undefined && body !== null && request.readableEnded === true)
    throw new VerificationError(
      'body_already_parsed',
      'Put verifyWebhook before express.json(), or use express.raw({ type: "*/*" }) on this route.',
    );
  return readAll(request, maxBytes);
}
