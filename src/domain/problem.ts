/**
 * Every error that an API client can see: a stable code, its status, its title. `docs/errors.md` explains each, and a
 * test compares the two.
 */
export const problemCodes = {
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  bad_request: { status: 400, title: 'Bad request' },
  bad_cursor: { status: 400, title: 'The cursor is not valid for this list' },
  unauthorized: { status: 401, title: 'A valid API key is required' },
  forbidden: { status: 403, title: 'The API key does not permit this' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'This method is not available here' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  conflict: { status: 409, title: 'The current state does not allow this' },
  endpoint_exists: { status: 409, title: 'The tenant already has such an endpoint' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for a different request' },
  request_in_progress: { status: 409, title: 'The same request is still in progress' },
  archived: { status: 410, title: 'The event is in the archive' },
  too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not supported' },
  invalid: { status: 422, title: 'The request is not valid' },
  payload_invalid: { status: 422, title: 'The payload does not match the catalogue' },
  url_invalid: { status: 422, title: 'The URL is not valid' },
  url_forbidden: { status: 422, title: 'Posthorn may not call this URL' },
  challenge_failed: { status: 422, title: 'The receiver did not confirm the challenge' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The address or the headers are too large' },
  internal: { status: 500, title: 'Internal error' },
  overloaded: { status: 503, title: 'Posthorn is overloaded' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
} as const;
export type ProblemCode = keyof typeof problemCodes;

export interface FieldError {
  readonly path: string;
  readonly message: string;
}

export class Problem extends Error {
  override name = 'Problem';
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[];
  readonly retryAfterSeconds: number | null;

  constructor(
    code: ProblemCode,
    detail: string,
    extra: { errors?: readonly FieldError[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(detail, { cause: extra.cause });
    this.code = code;
    this.errors = extra.errors ?? [];
    this.retryAfterSeconds = extra.retryAfterSeconds ?? null;
  }

  get status(): number {
    return problemCodes[this.code].status;
  }

  toJSON() {
    return {
      type: `urn:posthorn:problem:${this.code}`,
      title: problemCodes[this.code].title,
      status: this.status,
      detail: this.message,
      code: this.code,
      errors: this.errors,
    };
  }
}

/** A problem about several fields. */
export function invalidFields(errors: readonly FieldError[], code: ProblemCode = 'invalid'): Problem {
  return new Problem(code, errors.map(({ path, message }) => `${path}: ${message}`).join('; '), { errors });
}

/** A problem about one field. */
export function invalidField(path: string, message: string, code: ProblemCode = 'invalid'): Problem {
  return new Problem(code, `${path}: ${message}`, { errors: [{ path, message }] });
}

export function isProblem(error: unknown, code: ProblemCode): error is Problem {
  return error instanceof Problem && error.code === code;
}

export const tenantBeingDeleted = (tenant: string): Problem =>
  new Problem(
    'conflict',
    `The data of the tenant "${tenant}" is being deleted. Try again when that has ended.`,
  );
