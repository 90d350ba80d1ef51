import { VerificationError } from './errors.ts';
import { type AdapterOptions, rejection } from './raw-body.ts';
import { createVerifier, type VerifiedWebhook } from './verifier.ts';
import { verifyRequest } from './web.ts';

/** For `new Hono<WebhookEnv>()`: `c.get('webhook')` is typed then. */
export interface WebhookEnv<Payload = unknown> {
  Variables: { webhook: VerifiedWebhook<Payload> };
}

/** As much of Hono's context as is needed. */
interface Context {
  readonly req: { readonly raw: Request };
  set(key: 'webhook', value: VerifiedWebhook): void;
}

/**
 * Middleware: handlers after it find the webhook in `c.get('webhook')`. It reads the body, so take it from there.
 *
 * @example
 * app.post('/webhooks', verifyWebhook({ secret }), (c) => c.json(c.get('webhook').id));
 */
export function verifyWebhook(
  options: AdapterOptions,
): (c: Context, next: () => Promise<void>) => Promise<Response | undefined> {
  const verifier = createVerifier(options);
  return async (c, next) => {
    try {
      c.set('webhook', await verifyRequest(verifier, c.req.raw, options.maxBodyBytes));
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      options.onRejected?.(error);
      return new Response(rejection(error), {
        status: error.status,
        headers: { 'content-type': 'application/json' },
      });
    }
    await next();
    return undefined;
  };
}
