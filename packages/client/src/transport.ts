/**
 * One request, tried again while that is safe and useful:
 *
 *   - 429: it was not carried out, whatever it was;
 *   - 409 `request_in_progress`: an earlier try is still under way, and its answer is on its way;
 *   - 502, 503, 504, a broken connection, no answer in time: nobody knows whether it was. So only what may be carried out
 *     twice is tried again: GET, PUT, PATCH, DELETE, and a POST with an idempotency key, by which Posthorn knows it again.
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
  /** Where Posthorn is, such as `https://posthorn.example.com`. */
  readonly url: string;
  readonly key: string;
  /** For each try. 30 seconds by default. */
  readonly timeoutMs?: number;
  /** How often to try again. 4 by default. */
  readonly retries?: number;
  /** Instead of the global one. */
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly retries?: number;
  /** For operations that take one. Without it a random one is made, so that trying again is safe. */
  readonly idempotencyKey?: string;
}

export interface Request {
  readonly body?: unknown;
  readonly query?: object;
  /** The operation takes an idempotency key. */
  readonly keyed?: boolean;
  /** It changes nothing, although it is a POST. */
  readonly reads?: boolean;
}

const TIMEOUT_MS = 30_000;
const RETRIES = 4;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
/** Longer than this is for the caller to wait. */
const LONGEST_RETRY_AFTER_MS = 60_000;
const UNCERTAIN = new Set([502, 503, 504]);

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
    const key = idempotencyKey(request, options, retries);
    const isRepeatable =
      method !== 'POST' || request.reads === true || key !== undefined || hasKey(request.body);
    const init: RequestInit = {
      method,
      headers: {
        authorization: `Bearer ${this.#options.key}`,
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
    };
    const url = `${this.#url}${path}${search(request.query)}`;
    for (let tries = 0; ; tries += 1) {
      const outcome = await this.#try(url, init, options);
      if (outcome.ok) return outcome.value;
      const mayRepeat = outcome.refused || (isRepeatable && outcome.uncertain);
      const pauseMs = outcome.retryAfterMs ?? backoffMs(tries);
      if (!mayRepeat || tries >= retries || pauseMs > LONGEST_RETRY_AFTER_MS) throw outcome.error;
      await pause(pauseMs, options.signal);
    }
  }

  async #try(url: string, init: RequestInit, { signal, timeoutMs }: RequestOptions): Promise<Outcome> {
    const timeout = AbortSignal.timeout(timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS);
    const send = this.#options.fetch ?? fetch;
    try {
      const response = await send(url, {
        ...init,
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      });
      // Also the body may break off.
      return outcomeOf(response, await response.text());
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof PosthornError) throw error;
      const failure = timeout.aborted
        ? new TimeoutError('Posthorn did not answer in time.', { cause: error })
        : new ConnectionError('There is no connection to Posthorn, or it broke.', { cause: error });
      return { ok: false, error: failure, refused: false, uncertain: true, retryAfterMs: null };
    }
  }
}

type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      readonly error: PosthornError;
      /** It was not carried out. */
      readonly refused: boolean;
      /** It may have been carried out, and perhaps works the next time. */
      readonly uncertain: boolean;
      readonly retryAfterMs: number | null;
    };

function outcomeOf(response: Response, text: string): Outcome {
  const { ok, status, headers } = response;
  const isJson = /\bjson\b/.test(headers.get('content-type') ?? '');
  if (ok) return { ok, value: text === '' ? undefined : isJson ? JSON.parse(text) : text };
  const error = isJson ? problemOf(status, text) : new UnexpectedAnswerError(status, text);
  return {
    ok: false,
    error,
    refused: status === 429,
    uncertain: UNCERTAIN.has(status) || isUnderWay(error),
    retryAfterMs: retryAfterMs(headers.get('retry-after')),
  };
}

const isUnderWay = (error: PosthornError): boolean =>
  error instanceof ProblemError && error.code === 'request_in_progress';

function problemOf(status: number, text: string): PosthornError {
  const body = JSON.parse(text) as Partial<Problem>;
  return typeof body.code === 'string'
    ? new ProblemError(body as Problem)
    : new UnexpectedAnswerError(status, text);
}

function retryAfterMs(header: string | null): number | null {
  const seconds = Number(header ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
}

/** Longer each time, and never the same for many: they would all come back together. */
function backoffMs(tries: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

const hasKey = (body: unknown): boolean =>
  ((body ?? {}) as { idempotency_key?: unknown }).idempotency_key != null;

/** The caller's, the body's own, or a new one if it could be needed. */
function idempotencyKey(request: Request, options: RequestOptions, retries: number): string | undefined {
  if (options.idempotencyKey !== undefined) return options.idempotencyKey;
  return request.keyed === true && retries > 0 && !hasKey(request.body) ? crypto.randomUUID() : undefined;
}

function search(query: object | undefined): string {
  const given = Object.entries(query ?? {}).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}
