/**
 * Sends a request, and retries it if a retry is safe and useful:
 *
 *   - 429: Posthorn did not execute the request.
 *   - 409 `request_in_progress`: an earlier attempt is still running; the retry returns its response.
 *   - 502, 503, 504, a broken connection, a timeout: Posthorn may have executed the request. The client retries only
 *     what may be executed twice: GET, PUT, PATCH, DELETE, and a POST that only reads or has an idempotency key.
 */
import {
  ConnectionError,
  PosthornError,
  ProblemError,
  TimeoutError,
  UnexpectedAnswerError,
} from './errors.ts';
import type { Problem } from './generated.ts';

export interface PosthornOptions {
  /** The URL of Posthorn, such as `https://posthorn.example.com`. */
  readonly url: string;
  readonly key: string;
  /** The timeout of each attempt. Default: 30 seconds. */
  readonly timeoutMs?: number;
  /** The maximum number of retries. Default: 4. */
  readonly retries?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly retries?: number;
  /** For operations that take an idempotency key. By default the client generates one, so that retries are safe. */
  readonly idempotencyKey?: string;
}

export interface Request {
  readonly body?: unknown;
  readonly query?: object;
  /** The operation takes an idempotency key. */
  readonly keyed?: boolean;
  /** The operation changes nothing, although it is a POST. */
  readonly reads?: boolean;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 4;
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** If `Retry-After` asks for more, the client throws instead of waiting. */
const MAX_RETRY_AFTER_MS = 60_000;
const UNCERTAIN_STATUSES = new Set([502, 503, 504]);

export class Transport {
  readonly #options: PosthornOptions;
  readonly #url: string;

  constructor(options: PosthornOptions) {
    this.#options = options;
    this.#url = options.url.replace(/\/+$/, '');
  }

  async request(
    method: string,
    path: string,
    request: Request,
    options: RequestOptions = {},
  ): Promise<unknown> {
    const retries = options.retries ?? this.#options.retries ?? RETRIES;
    const key = chooseIdempotencyKey(request, options, retries);
    const isRepeatable =
      method !== 'POST' || request.reads === true || key !== undefined || hasIdempotencyKey(request.body);
    const init: RequestInit = {
      method,
      headers: {
        authorization: `Bearer ${this.#options.key}`,
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    };
    const url = `${this.#url}${path}${toSearch(request.query)}`;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#attempt(url, init, options);
      if (outcome.ok) return outcome.value;
      const canRetry = outcome.isRejected || (isRepeatable && outcome.isUncertain);
      const pauseMs = outcome.retryAfterMs ?? computeBackoffMs(attempt);
      if (!canRetry || attempt >= retries || pauseMs > MAX_RETRY_AFTER_MS) throw outcome.error;
      await sleep(pauseMs, options.signal);
    }
  }

  async #attempt(url: string, init: RequestInit, { signal, timeoutMs }: RequestOptions): Promise<Outcome> {
    const timeout = AbortSignal.timeout(timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS);
    const send = this.#options.fetch ?? fetch;
    try {
      const response = await send(url, {
        ...init,
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      });
      // Read the body here, because the connection may still break.
      return toOutcome(response, await response.text());
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof PosthornError) throw error;
      const failure = timeout.aborted
        ? new TimeoutError('Posthorn did not answer within the timeout.', { cause: error })
        : new ConnectionError('The connection to Posthorn failed.', { cause: error });
      return { ok: false, error: failure, isRejected: false, isUncertain: true, retryAfterMs: null };
    }
  }
}

type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly error: PosthornError;
      /** Posthorn did not execute the request, and a retry may succeed. */
      readonly isRejected: boolean;
      /** Posthorn may have executed the request, and a retry may succeed. */
      readonly isUncertain: boolean;
      readonly retryAfterMs: number | null;
    };

function toOutcome(response: Response, text: string): Outcome {
  const { ok, status, headers } = response;
  const isJson = /\bjson\b/.test(headers.get('content-type') ?? '');
  if (ok) return { ok, value: text === '' ? undefined : isJson ? JSON.parse(text) : text };
  const error = isJson ? parseProblem(status, text) : new UnexpectedAnswerError(status, text);
  return {
    ok: false,
    error,
    isRejected: status === 429,
    isUncertain: UNCERTAIN_STATUSES.has(status) || isInProgress(error),
    retryAfterMs: parseRetryAfterMs(headers.get('retry-after')),
  };
}

const isInProgress = (error: PosthornError): boolean =>
  error instanceof ProblemError && error.code === 'request_in_progress';

function parseProblem(status: number, text: string): PosthornError {
  const body = JSON.parse(text) as Partial<Problem>;
  return typeof body.code === 'string'
    ? new ProblemError(body as Problem)
    : new UnexpectedAnswerError(status, text);
}

function parseRetryAfterMs(header: string | null): number | null {
  const seconds = Number(header ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}

/** Exponential, with jitter so that many clients do not retry at the same moment. */
function computeBackoffMs(attempt: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** attempt, MAX_BACKOFF_MS) * (0.5 + Math.random() / 2);
}

/** Resolves after the time. Rejects with the signal's reason if it aborts before. */
function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

const hasIdempotencyKey = (body: unknown): boolean =>
  ((body ?? {}) as { idempotency_key?: unknown }).idempotency_key != null;

/** Returns the caller's key, or a new one if the operation takes one, the body has none, and there may be retries. */
function chooseIdempotencyKey(
  request: Request,
  options: RequestOptions,
  retries: number,
): string | undefined {
  if (options.idempotencyKey !== undefined) return options.idempotencyKey;
  return request.keyed === true && retries > 0 && !hasIdempotencyKey(request.body)
    ? crypto.randomUUID()
    : undefined;
}

function toSearch(query: object | undefined): string {
  const parameters = Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return parameters.length === 0 ? '' : `?${new URLSearchParams(parameters)}`;
}
