/**
 * Caches access tokens of OAuth 2 clients until shortly before they expire. An endpoint requests one token at a time,
 * however many of its attempts wait for it. Failures are not cached: the next attempt requests again, when the endpoint's
 * retry policy and circuit breaker allow it.
 *
 *   attempt ─▶ cached and valid? ─▶ token
 *                  └─ no ─▶ already requested? ─▶ wait
 *                               └─ no ─▶ request ─▶ token or failure, for all that wait
 */
import type { Clock } from '../domain/clock.ts';
import { DeliveryError } from './classify-error.ts';
import type { TokenAnswer } from './token-request.ts';

export interface AccessToken {
  readonly value: string;
  /** True if the token was fetched while this attempt waited, so that it cannot have expired. */
  readonly isFresh: boolean;
}

export type TokenReceiver = (token: AccessToken | DeliveryError) => void;

/** The tokens of one endpoint. */
export interface TokenSource {
  /** Calls `done` once, perhaps synchronously. */
  get(done: TokenReceiver): void;
  /** Removes a token that the receiver rejected. */
  discard(value: string): void;
}

interface CachedToken {
  readonly value: string;
  readonly until: number;
}

const MAX_TOKENS = 10_000;
const MAX_LIFETIME_SECONDS = 3600;
const DEFAULT_LIFETIME_SECONDS = 300;
/** A token must outlive the request that carries it. */
const MARGIN_SECONDS = 30;

/** Subtracts the margin, but at most a fifth of the lifetime. */
function usableMs(lifetimeSeconds: number | null): number {
  const seconds = Math.min(lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS);
  return (seconds - Math.min(MARGIN_SECONDS, seconds / 5)) * 1000;
}

export class AccessTokens {
  readonly #clock: Clock;
  /** In the order of fetching. */
  readonly #cached = new Map<string, CachedToken>();
  readonly #waiting = new Map<string, TokenReceiver[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `key` identifies the endpoint and everything its tokens depend on. */
  source(key: string, request: (done: (answer: TokenAnswer | DeliveryError) => void) => void): TokenSource {
    return {
      get: (done) => {
        const cached = this.#cached.get(key);
        if (cached !== undefined && cached.until > this.#clock.monotonic())
          return done({ value: cached.value, isFresh: false });
        const waiting = this.#waiting.get(key);
        if (waiting !== undefined) return void waiting.push(done);
        this.#waiting.set(key, [done]);
        request((answer) => this.#onAnswer(key, answer));
      },
      discard: (value) => {
        if (this.#cached.get(key)?.value === value) this.#cached.delete(key);
      },
    };
  }

  #onAnswer(key: string, answer: TokenAnswer | DeliveryError): void {
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    this.#cached.delete(key);
    const hasFailed = answer instanceof DeliveryError;
    if (!hasFailed) this.#cache(key, answer);
    for (const done of waiting) done(hasFailed ? answer : { value: answer.token, isFresh: true });
  }

  #cache(key: string, { token, lifetimeSeconds }: TokenAnswer): void {
    this.#cached.set(key, { value: token, until: this.#clock.monotonic() + usableMs(lifetimeSeconds) });
    if (this.#cached.size > MAX_TOKENS) this.#cached.delete(this.#cached.keys().next().value!);
  }
}
