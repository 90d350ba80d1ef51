import { VerificationError } from './errors.ts';
import { type AdapterOptions, buildRejectionResponse } from './raw-body.ts';
import { createVerifier, type VerifiedWebhook } from './verifier.ts';
import { verifyRequest } from './web.ts';

/** Use it as `new Hono<WebhookEnv>()`, so that `c.get('webhook')` is typed. */
export interface WebhookEnv<Payload = unknown> {
  Variables: { webhook: VerifiedWebhook<Payload> };
}

/** The parts of Hono's context that the middleware uses. */
interface Context {
  readonly req: { readonly raw: Request };
  set(key: 'webhook', value: VerifiedWebhook): void;
}

/**
 * Middleware. Handlers after it get the webhook, including the body, with `c.get('webhook')`: the request's body is consumed.
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
      return buildRejectionResponse(error);
    }
    await next();
    return undefined;
  };
}
