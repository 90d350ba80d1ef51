/** For frameworks with web `Request` and `Response`: Next.js route handlers, Workers, Deno, Bun, Remix, SvelteKit. */
import { VerificationError } from './errors.ts';
import {
  type AdapterOptions,
  buildRejectionResponse,
  DEFAULT_MAX_BODY_BYTES,
  readRequest,
} from './raw-body.ts';
import { createVerifier, type VerifiedWebhook, type Verifier } from './verifier.ts';

export type WebHandler<Payload, Rest extends unknown[]> = (
  webhook: VerifiedWebhook<Payload>,
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>;

/** Reads and verifies a request. Throws `VerificationError`. */
export async function verifyRequest<Payload = unknown>(
  verifier: Verifier,
  request: Request,
  maxBodyBytes = DEFAULT_MAX_BODY_BYTES,
): Promise<VerifiedWebhook<Payload>> {
  return verifier.verify<Payload>(await readRequest(request, maxBodyBytes), request.headers);
}

/**
 * Creates a route handler that verifies requests and calls `handler` with the verified webhook.
 *
 * @example
 * export const POST = webhookHandler({ secret: process.env.WEBHOOK_SECRET! }, async ({ payload }) => new Response());
 */
export function webhookHandler<Payload = unknown, Rest extends unknown[] = []>(
  options: AdapterOptions,
  handler: WebHandler<Payload, Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const verifier = createVerifier(options);
  return async (request, ...rest) => {
    let webhook: VerifiedWebhook<Payload>;
    try {
      webhook = await verifyRequest<Payload>(verifier, request, options.maxBodyBytes);
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      options.onRejected?.(error);
      return buildRejectionResponse(error);
    }
    return handler(webhook, request, ...rest);
  };
}
