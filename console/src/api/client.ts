/**
 * HTTP requests to Posthorn's API. The key is sent in a header only. With a session instead of a key, the browser sends the
 * session's cookie, and the header shows that the request comes from this page. Every failure throws an `ApiError`.
 */
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

let apiKey: string | null = null;
let csrfToken: string | null = null;
let unauthorizedListener: () => void = () => {};

/** Whether the last request got a response, of any status. */
export const isServerReachable = createStore(true);

export function setApiKey(key: string | null): void {
  apiKey = key;
  csrfToken = null;
}

/** From now on requests use the session of the browser's cookie. */
export function setCsrfToken(token: string): void {
  apiKey = null;
  csrfToken = token;
}

/** Calls the listener when the API answers 401 to the current key or session. */
export function onUnauthorized(listener: () => void): void {
  unauthorizedListener = listener;
}

/** Sends a request and returns its successful response. Throws `ApiError` for any other status and without a connection. */
export async function sendRequest(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const sentKey = apiKey ?? csrfToken;
  const response = await fetch(path, {
    method,
    headers: {
      ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
      ...(csrfToken !== null && { 'x-posthorn-csrf': csrfToken }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    // A string is JSON already: parsing it would round large numbers.
    body: typeof body === 'string' || body === undefined ? body : JSON.stringify(body),
    signal: signal ?? null,
    credentials: csrfToken === null ? 'omit' : 'same-origin',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    isServerReachable.set(false);
    throw new ApiError(
      0,
      'unreachable',
      'Posthorn does not answer. It may be restarting: this page retries.',
    );
  });
  isServerReachable.set(true);
  if (response.ok) return response;
  // A late answer to the previous key must not end the current session.
  if (response.status === 401 && sentKey !== null && sentKey === (apiKey ?? csrfToken))
    unauthorizedListener();
  throw await readProblem(response);
}

async function readProblem(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  return new ApiError(
    response.status,
    typeof problem.code === 'string' ? problem.code : 'unknown',
    typeof problem.detail === 'string' ? problem.detail : `Posthorn answered ${response.status}.`,
    Array.isArray(problem.errors) ? (problem.errors as FieldError[]) : [],
    response.headers.get('x-request-id'),
  );
}

/** Sends a request and returns the JSON of its response; undefined for 204. */
export async function callApi<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const response = await sendRequest(method, path, body, signal);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Appends the query parameters that are set: `/v1/events?type=…`. */
export function withQuery(path: string, query: Record<string, string | number | null | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return text === '' ? path : `${path}?${text}`;
}
