/**
 * Access tokens of OAuth 2 clients, held until shortly before they expire. One request for a token at a time for each
 * endpoint, however many of its attempts wait for it. Failures are not held: the next attempt asks again, and how soon that
 * is, the endpoint's retries and breaker decide.
 *
 *   attempt ─▶ held and good? ─▶ token
 *                  └─ no ─▶ asked for already? ─▶ wait
 *                               └─ no ─▶ request ─▶ token or failure, for all that wait
 */
import type { Clock } from '../domain/clock.ts';
import { DeliveryError } from './classify-error.ts';
import type { TokenAnswer } from './token-request.ts';

export interface AccessToken {
  readonly value: string;
  /** Fetched for this attempt, or while it waited: it cannot be an old one. */
  readonly fresh: boolean;
}

export type TokenReceiver = (token: AccessToken | DeliveryError) => void;

/** The tokens of one endpoint. */
export interface TokenSource {
  /** Calls `done` once, perhaps at once. */
  get(done: TokenReceiver): void;
  /** The receiver does not take it: it is not handed out again. */
  discard(value: string): void;
}

interface HeldToken {
  readonly value: string;
  readonly until: number;
}

const MAX_TOKENS = 10_000;
const MAX_LIFETIME_SECONDS = 3600;
const DEFAULT_LIFETIME_SECONDS = 300;
/** It has to last for the request that carries it. */
const MARGIN_SECONDS = 30;

/** A lifetime that is short in itself loses a fifth. */
function usableMs(lifetimeSeconds: number | null): number {
  const seconds = Math.min(lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS);
  return (seconds - Math.min(MARGIN_SECONDS, seconds / 5)) * 1000;
}

export class AccessTokens {
  readonly #clock: Clock;
  /** In the order in which they were fetched. */
  readonly #held = new Map<string, HeldToken>();
  readonly #waiting = new Map<string, TokenReceiver[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `key` names the endpoint and all that its tokens depend on. */
  source(key: string, request: (done: (answer: TokenAnswer | DeliveryError) => void) => void): TokenSource {
    return {
      get: (done) => {
        const held = this.#held.get(key);
        if (held !== undefined && held.until > this.#clock.monotonic())
          return done({ value: held.value, fresh: false });
        const waiting = this.#waiting.get(key);
        if (waiting !== undefined) return void waiting.push(done);
        this.#waiting.set(key, [done]);
        request((answer) => this.#answered(key, answer));
      },
      discard: (value) => {
        if (this.#held.get(key)?.value === value) this.#held.delete(key);
      },
    };
  }

  #answered(key: string, answer: TokenAnswer | DeliveryError): void {
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    this.#held.delete(key);
    const failed = answer instanceof DeliveryError;
    if (!failed) this.#hold(key, answer);
    for (const done of waiting) done(failed ? answer : { value: answer.token, fresh: true });
  }

  #hold(key: string, { token, lifetimeSeconds }: TokenAnswer): void {
    this.#held.set(key, { value: token, until: this.#clock.monotonic() + usableMs(lifetimeSeconds) });
    if (this.#held.size > MAX_TOKENS) this.#held.delete(this.#held.keys().next().value!);
  }
}
