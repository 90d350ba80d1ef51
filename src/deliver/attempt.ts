/**
 * One attempt: the handler that undici calls back, from the request on the wire to the outcome.
 *
 *   start ─▶ connecting ─▶ sent ─▶ status line ─▶ body ─▶ end
 *     └──────────┴───────────┴─ an error or the deadline here fails the attempt
 *                                       └──────────┴─ here the status has decided: what is read so far is kept
 *
 * `done` is called exactly once, outside of undici's parser (which does not bear being entered again).
 */
import type { Dispatcher } from 'undici';
import type { Clock } from '../domain/clock.ts';
import type { AttemptOutcome, ErrorClass } from '../domain/outcome.ts';
import {
  codeOf,
  DeliveryError,
  errorMessage,
  exchangeErrorClass,
  isConnectionLoss,
  statusErrorClass,
} from './classify-error.ts';
import type { ConnectTimes, Target } from './connector.ts';
import { followRedirect } from './redirect.ts';
import { parseRetryAfter } from './retry-after.ts';
import type { Passenger, Slot, SocketPools } from './socket-pool.ts';

export interface Destination {
  readonly url: string;
  readonly origin: string;
  readonly path: string;
  readonly target: Target;
}

export interface AttemptContext {
  readonly clock: Clock;
  readonly pools: SocketPools;
  readonly responseCapBytes: number;
  /** Hands an outcome to its owner later in this turn of the event loop. */
  settle(attempt: Attempt): void;
  /** Checks a redirect's target against the egress policy. */
  locate(url: string): Destination | ErrorClass;
}

const EMPTY = Buffer.alloc(0);
/** A receiver that sends more of these than anyone needs is not going to answer. */
const MAX_INFORMATIONAL = 16;
/** A reused socket that breaks this soon was closed by the receiver before our request reached it. */
const STALE_SOCKET_MS = 500;

export class Attempt implements Passenger {
  readonly done: (outcome: AttemptOutcome) => void;
  outcome: AttemptOutcome | null = null;
  readonly #context: AttemptContext;
  readonly #body: Buffer;
  readonly #startedAt: number;
  readonly #start: number;
  readonly #redirectsAllowed: number;
  #destination: Destination;
  #headers: Record<string, string>;
  #slot: Slot | null = null;
  #reused = false;
  #resent = false;
  #sentAt = 0;
  #redirects = 0;
  #informational = 0;
  #responseBegan = false;
  #times: ConnectTimes | null = null;
  #firstByteMs: number | null = null;
  #status: number | null = null;
  #responseHeaders: Record<string, string> | null = null;
  #chunks: Buffer[] | null = null;
  #received = 0;
  #cancelDeadline: (() => void) | null = null;

  constructor(
    context: AttemptContext,
    destination: Destination,
    headers: Record<string, string>,
    body: Buffer,
    redirectsAllowed: number,
    startedAt: number,
    start: number,
    done: (outcome: AttemptOutcome) => void,
  ) {
    this.#context = context;
    this.#destination = destination;
    this.#headers = headers;
    this.#body = body;
    this.#redirectsAllowed = redirectsAllowed;
    this.#startedAt = startedAt;
    this.#start = start;
    this.done = done;
  }

  begin(timeoutMs: number): void {
    this.#cancelDeadline = this.#context.clock.after(timeoutMs, () => this.#deadline());
    this.#dispatch(false);
  }

  /** Ends the attempt from outside: the deliverer is being closed. */
  abandon(): void {
    this.#fail('internal', 'shutting down');
  }

  #dispatch(fresh: boolean): void {
    const { origin, path, target } = this.#destination;
    const { slot, reused } = this.#context.pools.take(origin, target, fresh);
    this.#slot = slot;
    this.#reused = reused;
    this.#sentAt = this.#context.clock.monotonic();
    slot.dispatch({ method: 'POST', path, headers: this.#headers, body: this.#body }, this);
  }

  // --- called by the slot and by undici ---------------------------------------------------------------------

  connected(times: ConnectTimes): void {
    this.#times = times;
    this.#reused = false;
  }

  onRequestStart(): void {}

  onResponseStarted(): void {
    this.#responseBegan = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.outcome !== null) return;
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) this.#fail('http_1xx', status);
      return;
    }
    this.#firstByteMs = this.#elapsed();
    this.#status = status;
    this.#responseHeaders = flatten(headers);
    if (status >= 300 && status < 400 && this.#redirectsAllowed > 0 && status !== 304) this.#redirect(status);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.outcome !== null) return;
    const room = this.#context.responseCapBytes - this.#received;
    // Copied, because the chunk is a view of a much larger read buffer that would live as long as it does.
    const kept = Buffer.from(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#received += kept.length;
    if (this.#chunks === null) this.#chunks = [kept];
    else this.#chunks.push(kept);
    if (chunk.length > room) this.#answered(true);
  }

  onResponseEnd(): void {
    if (this.outcome !== null) return;
    this.#answered(false);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.outcome !== null) return;
    if (this.#status !== null) {
      // The status line has decided; what breaks afterwards only cuts the body short.
      this.#answered(true);
    } else if (this.#isStaleSocket(error)) {
      this.#resent = true;
      this.#slot?.drop();
      this.#dispatch(true);
    } else if (this.#isForeignUpgrade(error)) {
      this.#fail('http_1xx', null);
    } else {
      this.#fail(exchangeErrorClass(error), error instanceof DeliveryError ? error.detail : codeOf(error));
    }
  }

  // --- ends -------------------------------------------------------------------------------------------------

  #deadline(): void {
    if (this.outcome !== null) return;
    if (this.#status !== null) this.#answered(true);
    else this.#fail('timeout', null);
  }

  #answered(truncated: boolean): void {
    const status = this.#status!;
    const errorClass = statusErrorClass(status);
    this.#finish(errorClass, status, truncated, !truncated);
  }

  #fail(errorClass: ErrorClass, detail: string | number | null): void {
    if (this.outcome === null) this.#finish(errorClass, detail, this.#received > 0, false);
  }

  #finish(
    errorClass: ErrorClass | null,
    detail: string | number | null,
    truncated: boolean,
    reusable: boolean,
  ): void {
    this.#cancelDeadline?.();
    const status = this.#status;
    const retryAfter = status === 429 || status === 503 ? this.#responseHeaders?.['retry-after'] : undefined;
    this.outcome = {
      startedAt: this.#startedAt,
      durationMs: this.#elapsed(),
      timing: {
        dnsMs: this.#times?.dnsMs ?? null,
        connectMs: this.#times?.connectMs ?? null,
        tlsMs: this.#times?.tlsMs ?? null,
        firstByteMs: this.#firstByteMs,
      },
      statusCode: status,
      error: errorClass === null ? null : { class: errorClass, message: errorMessage(errorClass, detail) },
      url: this.#destination.url,
      requestHeaders: this.#headers,
      responseHeaders: this.#responseHeaders,
      responseBody: status === null ? null : this.#responseBody(),
      responseTruncated: truncated,
      retryAfterMs: parseRetryAfter(retryAfter, this.#context.clock.now()),
    };
    const slot = this.#slot;
    this.#slot = null;
    if (reusable) slot?.release();
    else slot?.drop();
    this.#context.settle(this);
  }

  #responseBody(): Buffer {
    if (this.#chunks === null) return EMPTY;
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#received);
  }

  #redirect(status: number): void {
    // Its body is of no interest, and reading it would spend the deadline.
    const previous = this.#slot;
    const next = followRedirect(
      { status, location: this.#responseHeaders?.location, hops: this.#redirects },
      this.#redirectsAllowed,
      this.#destination,
      this.#headers,
      this.#context.locate,
    );
    if (typeof next === 'string') {
      this.#fail(next, status);
      return;
    }
    this.#redirects += 1;
    this.#destination = next.destination;
    this.#headers = next.headers;
    this.#status = null;
    this.#responseHeaders = null;
    this.#firstByteMs = null;
    this.#times = null;
    this.#responseBegan = false;
    this.#slot = null;
    previous?.drop();
    this.#dispatch(false);
  }

  #elapsed(): number {
    return this.#context.clock.monotonic() - this.#start;
  }

  #isStaleSocket(error: Error): boolean {
    return (
      this.#reused &&
      !this.#resent &&
      !this.#responseBegan &&
      isConnectionLoss(error) &&
      this.#context.clock.monotonic() - this.#sentAt < STALE_SOCKET_MS
    );
  }

  /** undici cuts off a 100 or 101 that nobody asked for with the same code as a connection that the peer ended. */
  #isForeignUpgrade(error: Error): boolean {
    return this.#responseBegan && codeOf(error) === 'UND_ERR_SOCKET' && this.#slot?.peerEnded === false;
  }
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string') headers[name] = value === undefined ? '' : value.join(', ');
  }
  return headers as Record<string, string>;
}
