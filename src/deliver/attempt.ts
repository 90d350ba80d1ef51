/**
 * One attempt: one exchange with the receiver, or several if it redirects, under one deadline.
 *
 *   start ─▶ connecting ─▶ sent ─▶ status line ─▶ body ─▶ end
 *     └──────────┴───────────┴─ an error or the deadline here fails the attempt
 *                                       └──────────┴─ here the status decides: the body read so far is kept
 */
import type { Clock } from '../domain/clock.ts';
import type { AttemptOutcome, ErrorClass } from '../domain/outcome.ts';
import type { AccessToken, TokenSource } from './access-tokens.ts';
import {
  codeOf,
  DeliveryError,
  errorMessage,
  exchangeErrorClass,
  isConnectionLoss,
  shortageOf,
  statusErrorClass,
} from './classify-error.ts';
import type { Destination } from './destination.ts';
import { Exchange, type ExchangeOwner } from './exchange.ts';
import { type GivenNames, type HeaderRedaction, redactHeaders, withGivenNames } from './headers.ts';
import { followRedirect } from './redirect.ts';
import { parseRetryAfter } from './retry-after.ts';
import type { SocketPools } from './socket-pool.ts';

export interface AttemptContext {
  readonly clock: Clock;
  readonly pools: SocketPools;
  readonly responseCapBytes: number;
  readonly wireCapBytes: number;
  /** Called once the attempt has its outcome. */
  onEnded(attempt: Attempt): void;
  /** True: redirects to other hosts are not followed. */
  readonly redirectsWithinHost: boolean;
  /** Checks the target of a redirect like any other URL. */
  locate(url: string): Destination | ErrorClass;
}

export interface AttemptInput {
  readonly method: 'POST' | 'OPTIONS';
  readonly destination: Destination;
  readonly headers: Record<string, string>;
  /** The names of headers on the wire, if they are not the lower-case ones. */
  readonly names: GivenNames;
  /** The source of the access token. Null: `authorization` is fixed or absent. */
  readonly tokens: TokenSource | null;
  readonly body: Buffer | null;
  readonly redirectsAllowed: number;
  /** The headers that the endpoint, the event or the caller has set, which stay with the origin. */
  readonly customHeaders: readonly (Readonly<Record<string, string>> | null)[];
  /** Which headers are recorded without their values. */
  readonly redaction: HeaderRedaction;
  readonly timeoutMs: number;
  /** When the attempt started, on the wall clock and on the monotonic clock. */
  readonly startedAt: number;
  readonly startMonotonic: number;
  /** Called when the connection is open. False: do not send the request. */
  readonly maySend: () => boolean;
  readonly done: (outcome: AttemptOutcome) => void;
}

/** A reused connection that breaks within this time was stale: the receiver had closed it before the request arrived. */
const STALE_CONNECTION_MS = 500;

/** Rounds to two decimals. More digits would be noise and make logs longer. */
const roundMs = (ms: number): number => Math.round(ms * 100) / 100;
const roundOrNull = (ms: number | null | undefined): number | null =>
  ms === null || ms === undefined ? null : roundMs(ms);

const customNames = (given: AttemptInput['customHeaders']): ReadonlySet<string> =>
  new Set(given.flatMap((headers) => Object.keys(headers ?? {})).map((name) => name.toLowerCase()));

export class Attempt implements ExchangeOwner {
  readonly input: AttemptInput;
  readonly responseCapBytes: number;
  readonly wireCapBytes: number;
  outcome: AttemptOutcome | null = null;
  readonly #context: AttemptContext;
  #destination: Destination;
  #headers: Record<string, string>;
  #token: AccessToken | null = null;
  /** Null while the attempt waits for its access token. */
  #exchange: Exchange | null = null;
  #sentAt = 0;
  #firstByteMs: number | null = null;
  #redirects = 0;
  #isWithdrawn = false;
  #shortage: string | null = null;
  #cancelDeadline: (() => void) | null = null;

  constructor(context: AttemptContext, input: AttemptInput) {
    this.#context = context;
    this.input = input;
    this.responseCapBytes = context.responseCapBytes;
    this.wireCapBytes = context.wireCapBytes;
    this.#destination = input.destination;
    this.#headers = input.headers;
  }

  begin(): void {
    const { clock } = this.#context;
    // The event loop runs timers before sockets. After a stall (garbage collection, a busy machine) the answer may
    // already be in the socket: wait one more turn, so that it is read.
    this.#cancelDeadline = clock.after(this.input.timeoutMs, () => {
      this.#cancelDeadline = clock.after(0, () => this.#onDeadline());
    });
    const { tokens } = this.input;
    if (tokens === null) this.#startExchange(false);
    else tokens.get((token) => this.#onToken(token));
  }

  #onToken(token: AccessToken | DeliveryError): void {
    if (this.outcome !== null) return;
    if (token instanceof DeliveryError) {
      this.#fail(token);
      return;
    }
    this.#token = token;
    this.#headers.authorization = `Bearer ${token.value}`;
    this.#startExchange(false);
  }

  /** Ends the attempt because the deliverer is being closed. */
  abandon(): void {
    this.#exchange?.cutShort();
    // The attempt is withdrawn, not failed. The next owner sends the delivery again, even if the receiver has processed it.
    this.#isWithdrawn = true;
    this.#finish('internal', 'shutting down');
  }

  #startExchange(isNewConnection: boolean): void {
    const { method, body, names } = this.input;
    const exchange = new Exchange(this, this.#context.pools.take(this.#destination, isNewConnection));
    this.#exchange = exchange;
    this.#sentAt = this.#context.clock.monotonic();
    const headers = withGivenNames(this.#headers, names);
    exchange.start({ method, path: this.#destination.path, headers, body });
  }

  findRefusal(): DeliveryError | null {
    if (!this.input.maySend()) {
      this.#isWithdrawn = true;
      return new DeliveryError('internal', 'withdrawn');
    }
    // Check the deadline here too: its timer may run after this.
    return this.#elapsed() < this.input.timeoutMs ? null : new DeliveryError('connect_timeout');
  }

  wantsBody(exchange: Exchange): boolean {
    this.#firstByteMs = this.#elapsed();
    return !this.#isRedirect(exchange.status!);
  }

  onExchangeEnded(exchange: Exchange, error: unknown): void {
    if (exchange.status !== null) {
      if (this.#isRedirect(exchange.status)) this.#redirect(exchange);
      else this.#finish(this.#statusClass(exchange.status), exchange.status);
    } else if (this.#wasConnectionStale(exchange, error)) {
      // The request never reached the receiver, so this does not count as an attempt. This happens at most once, because
      // a fresh connection is never stale.
      this.#startExchange(true);
    } else {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#shortage = shortageOf(error);
    if (this.#shortage !== null) this.#isWithdrawn = true;
    this.#finish(exchangeErrorClass(error), error instanceof DeliveryError ? error.detail : codeOf(error));
  }

  #onDeadline(): void {
    const exchange = this.#exchange;
    if (this.outcome !== null) return;
    if (exchange === null) {
      this.#finish('oauth_failed', 'timeout');
      return;
    }
    const { status, isConnecting } = exchange;
    exchange.cutShort();
    if (status !== null) this.#finish(this.#statusClass(status), status);
    else this.#finish(isConnecting ? 'connect_timeout' : 'timeout', null);
  }

  /** Discards an access token that the receiver rejects. A new one may help, unless this one was fetched just now. */
  #statusClass(status: number): ErrorClass | null {
    const token = this.#token;
    if (status !== 401 || token === null || this.#headers.authorization === undefined)
      return statusErrorClass(status);
    this.input.tokens!.discard(token.value);
    return token.isFresh ? statusErrorClass(status) : 'oauth_rejected';
  }

  #isRedirect(status: number): boolean {
    return status >= 300 && status < 400 && status !== 304 && this.input.redirectsAllowed > 0;
  }

  #redirect(exchange: Exchange): void {
    const next = followRedirect(
      { status: exchange.status!, location: exchange.headers?.location, hops: this.#redirects },
      {
        allowed: this.input.redirectsAllowed,
        withinHost: this.#context.redirectsWithinHost,
        customHeaders: customNames(this.input.customHeaders),
        locate: this.#context.locate,
      },
      this.#destination,
      this.#headers,
    );
    if (typeof next === 'string') {
      this.#finish(next, exchange.status);
      return;
    }
    this.#redirects += 1;
    this.#destination = next.destination;
    this.#headers = next.headers;
    this.#firstByteMs = null;
    this.#startExchange(false);
  }

  #wasConnectionStale(exchange: Exchange, error: unknown): boolean {
    return (
      exchange.isReused &&
      !exchange.hasBegun &&
      isConnectionLoss(error) &&
      this.#context.clock.monotonic() - this.#sentAt < STALE_CONNECTION_MS
    );
  }

  #elapsed(): number {
    return roundMs(this.#context.clock.monotonic() - this.input.startMonotonic);
  }

  #finish(errorClass: ErrorClass | null, detail: string | number | null): void {
    if (this.outcome !== null) return;
    this.#cancelDeadline?.();
    const exchange = this.#exchange;
    const status = exchange?.status ?? null;
    const headers = exchange?.headers ?? null;
    const times = exchange?.times;
    const retryAfter = status === 429 || status === 503 ? headers?.['retry-after'] : undefined;
    this.outcome = {
      startedAt: this.input.startedAt,
      durationMs: this.#elapsed(),
      timing: {
        dnsMs: roundOrNull(times?.dnsMs),
        connectMs: roundOrNull(times?.connectMs),
        tlsMs: roundOrNull(times?.tlsMs),
        firstByteMs: this.#firstByteMs,
      },
      statusCode: status,
      error: errorClass === null ? null : { class: errorClass, message: errorMessage(errorClass, detail) },
      url: this.#destination.url,
      requestHeaders: redactHeaders(this.#headers, this.input.redaction),
      responseHeaders: headers,
      responseBody: exchange?.body ?? null,
      responseTruncated: exchange?.isTruncated ?? false,
      retryAfterMs: parseRetryAfter(retryAfter, this.#context.clock.now()),
      ...(this.#isWithdrawn && { withdrawn: true }),
      ...(this.#shortage !== null && { shortage: this.#shortage }),
    };
    this.#context.onEnded(this);
  }
}
