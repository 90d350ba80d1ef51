/**
 * Caches access tokens of OAuth 2 clients until shortly before they expire. An endpoint requests one token at a time,
 * however many of its attempts wait for it. Tenants choose the token URL, so requests to it are limited: per endpoint,
 * and per tenant and host. After a failure the endpoint pauses before the next request, longer each time.
 *
 *   attempt ─▶ cached and valid? ─▶ token
 *                  └─ no ─▶ already requested? ─▶ wait
 *                               └─ no ─▶ must pause for long? ─▶ fail like the last request
 *                                            └─ no ─▶ pause ─▶ request ─▶ token or failure, for all that wait
 */
import type { Clock } from '../domain/clock.ts';
import { StartPacer } from '../domain/start-pacer.ts';
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

export interface TokenClient {
  /** Identifies the endpoint and everything its tokens depend on. */
  readonly key: string;
  /** Identifies the tenant and the host of the token URL. */
  readonly group: string;
  readonly request: (done: (answer: TokenAnswer | DeliveryError) => void) => void;
}

interface CachedToken {
  readonly value: string;
  readonly until: number;
}

interface Failure {
  readonly error: DeliveryError;
  readonly inARow: number;
  readonly retryAt: number;
}

const MAX_TOKENS = 10_000;
const MAX_LIFETIME_SECONDS = 3600;
const DEFAULT_LIFETIME_SECONDS = 300;
/** A token must outlive the request that carries it. */
const MARGIN_SECONDS = 30;

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 60_000;
/** An attempt waits for a pause up to this long. It fails at once if the pause is longer: waiting, it would hold a place that others need. */
const MAX_WAIT_MS = 2_000;

/** Subtracts the margin, but at most a fifth of the lifetime. */
function usableMs(lifetimeSeconds: number | null): number {
  const seconds = Math.min(lifetimeSeconds ?? DEFAULT_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS);
  return (seconds - Math.min(MARGIN_SECONDS, seconds / 5)) * 1000;
}

export class AccessTokens {
  readonly #clock: Clock;
  /** In the order of fetching. */
  readonly #cached = new Map<string, CachedToken>();
  readonly #failures = new Map<string, Failure>();
  readonly #waiting = new Map<string, TokenReceiver[]>();
  readonly #pauses = new Set<() => void>();
  readonly #perEndpoint = new StartPacer({ intervalMs: 1000, burst: 5, maxKinds: MAX_TOKENS });
  readonly #perHost = new StartPacer({ intervalMs: 50, burst: 100, maxKinds: MAX_TOKENS });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  createSource(client: TokenClient): TokenSource {
    const { key } = client;
    return {
      get: (done) => {
        const cached = this.#cached.get(key);
        if (cached !== undefined && cached.until > this.#clock.monotonic())
          return done({ value: cached.value, isFresh: false });
        const waiting = this.#waiting.get(key);
        if (waiting !== undefined) waiting.push(done);
        else this.#request(client, done);
      },
      discard: (value) => {
        if (this.#cached.get(key)?.value === value) this.#cached.delete(key);
      },
    };
  }

  /** Cancels the pauses. Attempts that wait for a token get no answer. */
  close(): void {
    for (const cancel of this.#pauses) cancel();
    this.#pauses.clear();
  }

  #request({ key, group, request }: TokenClient, done: TokenReceiver): void {
    const now = this.#clock.monotonic();
    const failure = this.#failures.get(key);
    const delay = Math.max(
      (failure?.retryAt ?? 0) - now,
      this.#perEndpoint.delayOf(key, now),
      this.#perHost.delayOf(group, now),
    );
    if (delay > MAX_WAIT_MS)
      return done(failure?.error ?? new DeliveryError('oauth_failed', { code: 'too many requests' }));
    this.#perEndpoint.count(key, now);
    this.#perHost.count(group, now);
    this.#waiting.set(key, [done]);
    const send = (): void => request((answer) => this.#onAnswer(key, answer));
    if (delay <= 0) send();
    else this.#after(delay, send);
  }

  #after(ms: number, send: () => void): void {
    const cancel = this.#clock.after(ms, () => {
      this.#pauses.delete(cancel);
      send();
    });
    this.#pauses.add(cancel);
  }

  #onAnswer(key: string, answer: TokenAnswer | DeliveryError): void {
    const waiting = this.#waiting.get(key) ?? [];
    this.#waiting.delete(key);
    this.#cached.delete(key);
    const hasFailed = answer instanceof DeliveryError;
    if (hasFailed) this.#recordFailure(key, answer);
    else this.#cache(key, answer);
    for (const done of waiting) done(hasFailed ? answer : { value: answer.token, isFresh: true });
  }

  #recordFailure(key: string, error: DeliveryError): void {
    // The token endpoint does not cause a shortage on this machine.
    if (error.errorClass === 'internal') return;
    const inARow = (this.#failures.get(key)?.inARow ?? 0) + 1;
    const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (inARow - 1));
    this.#failures.delete(key);
    this.#failures.set(key, { error, inARow, retryAt: this.#clock.monotonic() + pauseMs });
    dropOldest(this.#failures);
  }

  #cache(key: string, { token, lifetimeSeconds }: TokenAnswer): void {
    this.#failures.delete(key);
    this.#cached.set(key, { value: token, until: this.#clock.monotonic() + usableMs(lifetimeSeconds) });
    dropOldest(this.#cached);
  }
}

function dropOldest(entries: Map<string, unknown>): void {
  if (entries.size > MAX_TOKENS) entries.delete(entries.keys().next().value!);
}
