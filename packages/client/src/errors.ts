import type { Problem } from './generated.ts';

/** Whatever goes wrong between the caller and Posthorn. */
export class PosthornError extends Error {
  override name = 'PosthornError';
}

/** Posthorn answered, and said no. */
export class ProblemError extends PosthornError {
  override name = 'ProblemError';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }

  /** Stable: decide by this. */
  get code(): Problem['code'] {
    return this.problem.code;
  }

  get status(): number {
    return this.problem.status;
  }
}

/** No answer: the connection could not be made, or broke. Whether the request was carried out is not known. */
export class ConnectionError extends PosthornError {
  override name = 'ConnectionError';
}

/** No answer in time. Whether the request was carried out is not known. */
export class TimeoutError extends PosthornError {
  override name = 'TimeoutError';
}

/** An answer that is not of Posthorn: a proxy's, for instance. */
export class UnexpectedAnswerError extends PosthornError {
  override name = 'UnexpectedAnswerError';
  readonly status: number;

  constructor(status: number, text: string) {
    super(`HTTP ${status} without a problem: ${text.slice(0, 200)}`);
    this.status = status;
  }
}
