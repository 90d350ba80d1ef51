/** One function for every call: the key goes into a header and nowhere else, every failure is an `ApiError`. */
import { createStore } from './store.ts';

export interface FieldError {
  readonly path: string;
  readonly message: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: readonly FieldError[];
  readonly requestId: string | null;

  constructor(
    status: number,
    code: string,
    message: string,
    errors: readonly FieldError[] = [],
    requestId: string | null = null,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
    this.requestId = requestId;
  }
}

let key: string | null = null;
let refused: () => void = () => {};

/** Whether the last request got an answer, whatever it was. */
export const reachable = createStore(true);

export function setKey(newKey: string | null): void {
  key = newKey;
}

/** Called when the key of the session is not accepted any more. */
export function onRefused(listener: () => void): void {
  refused = listener;
}

export async function send(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const sentWith = key;
  const response = await fetch(path, {
    method,
    headers: {
      ...(sentWith !== null && { authorization: `Bearer ${sentWith}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    // Text is JSON already, with numbers that JavaScript would round.
    body: typeof body === 'string' || body === undefined ? body : JSON.stringify(body),
    signal: signal ?? null,
    credentials: 'omit',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    reachable.set(false);
    throw new ApiError(
      0,
      'unreachable',
      'Posthorn does not answer. It may be restarting: this page tries again.',
    );
  });
  reachable.set(true);
  if (response.ok) return response;
  if (response.status === 401 && key !== null && sentWith === key) refused();
  throw await toError(response);
}

async function toError(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  return new ApiError(
    response.status,
    typeof problem.code === 'string' ? problem.code : 'unknown',
    typeof problem.detail === 'string' ? problem.detail : `The answer was ${response.status}.`,
    Array.isArray(problem.errors) ? (problem.errors as FieldError[]) : [],
    response.headers.get('x-request-id'),
  );
}

export async function call<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const response = await send(method, path, body, signal);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** `/v1/events?type=…`: only what is set. */
export function withQuery(path: string, query: Record<string, string | number | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}
