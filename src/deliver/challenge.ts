/**
 * Asks a receiver whether it wants requests, before an endpoint is created. It uses the same guard and signature as a
 * delivery, but one attempt with a short deadline, and settles nothing.
 *
 * - echo: a signed event `posthorn.challenge` with a random token in its data, which the answer must repeat.
 * - cloudevents: the OPTIONS handshake of "HTTP 1.1 Web Hooks for Event Delivery". The rate that the receiver allows is
 *   ignored: set `rate_limit` on the endpoint instead.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { Challenge, Endpoint } from '../domain/endpoint.ts';
import { deliveryIdOf, newEventId } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import type { Deliverer } from './deliverer.ts';

export interface ChallengerOptions {
  readonly deliverer: Deliverer;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Its host name is sent as WebHook-Request-Origin. */
  readonly publicUrl: string;
}

/** Resolves with null if the receiver met the challenge, otherwise with a sentence that says what it answered. */
export type Challenger = (endpoint: Endpoint, challenge: Challenge) => Promise<string | null>;

const CHALLENGE_TYPE = 'posthorn.challenge';

export function createChallenger(options: ChallengerOptions): Challenger {
  const { deliverer, clock, timeoutMs } = options;

  async function echo(endpoint: Endpoint): Promise<string | null> {
    const token = randomBytes(32).toString('base64url');
    const id = newEventId(clock.now());
    const outcome = await new Promise<AttemptOutcome>((resolve) => {
      deliverer.send(
        {
          endpoint,
          event: {
            id,
            tenant: endpoint.tenant,
            type: CHALLENGE_TYPE,
            data: Buffer.from(JSON.stringify({ challenge: token })),
            idempotencyKey: null,
            schemaVersion: null,
            headers: null,
          },
          deliveryId: deliveryIdOf(id, 0),
          number: 1,
          retryReason: null,
          timeoutMs,
        },
        resolve,
      );
    });
    return failureOf(outcome) ?? echoFailure(outcome, token);
  }

  async function handshake(endpoint: Endpoint): Promise<string | null> {
    const origin = new URL(options.publicUrl).hostname;
    const outcome = await new Promise<AttemptOutcome>((resolve) => {
      deliverer.ask({ endpoint, headers: { 'webhook-request-origin': origin }, timeoutMs }, resolve);
    });
    return failureOf(outcome) ?? handshakeFailure(outcome, origin);
  }

  return (endpoint, challenge) => {
    // No redirects, because the URL itself must answer. Full payload, because a thin one would not contain the token.
    const challenged: Endpoint = { ...endpoint, followRedirects: 0, payload: 'full' };
    return challenge === 'echo' ? echo(challenged) : handshake(challenged);
  };
}

const failureOf = ({ error }: AttemptOutcome): string | null => error?.message ?? null;

/** The answer must be the token, or JSON with `challenge`. An answer that repeats the whole request does not show consent. */
function echoFailure({ statusCode, responseBody }: AttemptOutcome, token: string): string | null {
  const text = (responseBody ?? Buffer.alloc(0)).toString('utf8').trim();
  if (text === token || challengeIn(text) === token) return null;
  return text === ''
    ? `The receiver answered ${statusCode} with an empty body instead of the token.`
    : `The receiver answered ${statusCode} with something other than the token.`;
}

function challengeIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { challenge?: unknown } | null)?.challenge;
  } catch {
    return undefined;
  }
}

function handshakeFailure({ statusCode, responseHeaders }: AttemptOutcome, origin: string): string | null {
  const allowed = responseHeaders?.['webhook-allowed-origin']?.trim().toLowerCase();
  if (allowed === '*' || allowed === origin.toLowerCase()) return null;
  return allowed === undefined
    ? `The receiver answered ${statusCode} without WebHook-Allowed-Origin.`
    : `The receiver answered ${statusCode} and allows another origin than ${origin}.`;
}
