import type { Problem } from './generated.ts';

/** The base class of all errors of this client. */
export class PosthornError extends Error {
  override name = 'PosthornError';
}

/** Posthorn rejected the request. `problem` says why. */
export class ProblemError extends PosthornError {
  override name = 'ProblemError';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }

  /** A stable code. Use it, not the message, to handle errors. */
  get code(): Problem['code'] {
    return this.problem.code;
  }

  get status(): number {
    return this.problem.status;
  }
}

/** The connection failed before a response arrived. Posthorn may or may not have executed the request. */
export class ConnectionError extends PosthornError {
  override name = 'ConnectionError';
}

/** The response timed out. Posthorn may or may not have executed the request. */
export class TimeoutError extends PosthornError {
  override name = 'TimeoutError';
}

/** The response is not from Posthorn but, for instance, from a proxy. */
export class UnexpectedAnswerError extends PosthornError {
  override name = 'UnexpectedAnswerError';
  readonly status: number;

  constructor(status: number, text: string) {
    super(`HTTP ${status}, not a response of Posthorn: ${text.slice(0, 200)}`);
    this.status = status;
  }
}
