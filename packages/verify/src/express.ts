import { VerificationError } from './errors.ts';
import type { HeadersLike } from './headers.ts';
import { type AdapterOptions, DEFAULT_MAX_BODY_BYTES, readAll, rejection } from './raw-body.ts';
import { createVerifier, type RawBody, type VerifiedWebhook } from './verifier.ts';

/** As much of Express (or Connect, or plain Node) as is needed. */
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

/** Verified webhooks by the request that they came with. */
const verified = new WeakMap<object, VerifiedWebhook>();

/** The webhook of a request, in handlers after `verifyWebhook`. */
export function webhookOf<Payload = unknown>(request: object): VerifiedWebhook<Payload> {
  const webhook = verified.get(request);
  if (webhook === undefined) throw new TypeError('verifyWebhook has not verified this request.');
  return webhook as VerifiedWebhook<Payload>;
}

/**
 * Middleware for one route: handlers after it get the webhook by `webhookOf(request)`. Works without a body parser, and
 * after `express.raw()`. After `express.json()` the bytes are gone: put it before, or on its own route.
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
    const refuse = (error: unknown): void => {
      if (!(error instanceof VerificationError)) return next(error);
      options.onRejected?.(error);
      response.statusCode = error.status;
      response.setHeader('content-type', 'application/json');
      // What is left of a body that was too large is not read: the connection cannot be used again.
      if (error.reason === 'body_too_large') response.setHeader('connection', 'close');
      response.end(rejection(error));
    };
    rawBodyOf(request, maxBytes)
      .then((body) => verifier.verify(body, request.headers))
      .then((webhook) => {
        verified.set(request, webhook);
        // Outside of the chain: what a handler throws is not ours to catch.
        queueMicrotask(next);
      }, refuse);
  };
}

async function rawBodyOf(request: Incoming, maxBytes: number): Promise<RawBody> {
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
