/** Compares the problems that the API documents with those that tests have seen, by operation and code. */
import { expect } from 'vitest';
import { type ProblemCode, problemCodes } from '../../src/domain/problem.ts';
import { type ApiOperation, type Contract, codesOf } from './contract.ts';
import type { Answer } from './posthorn.ts';

/** Stands for every operation: problems that any request may get. */
export const ANY = 'any';
/** One event of a batch, which is refused on its own. */
export const ITEM = 'publishBatch item';

/** Problems with a `Retry-After` header. */
const HAS_RETRY_AFTER = new Set<ProblemCode>([
  'rate_limited',
  'overloaded',
  'unavailable',
  'request_in_progress',
]);

export class ProblemMatrix {
  readonly #contract: Contract;
  readonly #seen = new Set<string>();

  constructor(contract: Contract) {
    this.#contract = contract;
  }

  /** The operations that document this problem. */
  documenting(code: ProblemCode): ApiOperation[] {
    return this.#contract.operations.filter((operation) =>
      this.#contract.problemsOf(operation).some((known) => known.code === code && known.status !== 'default'),
    );
  }

  operation(name: string): ApiOperation {
    const found = this.#contract.operations.find((operation) => operation.name === name);
    if (found === undefined) throw new Error(`There is no operation ${name}.`);
    return found;
  }

  /** Expects this problem as documented, with an error for the field `path` if it is given. */
  refused(operation: ApiOperation, code: ProblemCode, answer: Answer, path?: string): void {
    const { status } = problemCodes[code];
    const what = `${operation.name}: ${answer.text}`;
    expect({ status: answer.status, code: answer.body?.code }, what).toEqual({ status, code });
    expect(this.#contract.violation(operation, answer)).toBeNull();
    expectNamed(what, answer.body.errors, path);
    // An `invalid` problem always names the invalid fields.
    if (code === 'invalid') expect(answer.body.errors, what).not.toEqual([]);
    expect(answer.body.request_id, what).toBe(answer.headers['x-request-id']);
    if (HAS_RETRY_AFTER.has(code)) expect(Number(answer.headers['retry-after']), what).toBeGreaterThan(0);
    this.#seen.add(`${operation.name} ${code}`);
  }

  refusedItem(code: ProblemCode, item: { error?: Answer['body'] }, path?: string): void {
    expect(item.error, JSON.stringify(item)).toMatchObject({ status: problemCodes[code].status, code });
    expectNamed(ITEM, item.error.errors, path);
    this.#seen.add(`${ITEM} ${code}`);
  }

  /** Expects a problem that any request may get. */
  refusedAnyhow(code: ProblemCode, answer: { status: number; body: Answer['body'] }): void {
    expect(answer).toMatchObject({ status: problemCodes[code].status, body: { code } });
    this.#seen.add(`${ANY} ${code}`);
  }

  /** Expects a status that is not a problem, such as 200, or 503 of the readiness probe. */
  answered(operation: ApiOperation, status: number, answer: Answer): void {
    expect(answer.status, `${operation.name}: ${answer.text}`).toBe(status);
    expect(this.#contract.violation(operation, answer)).toBeNull();
    this.#seen.add(`${operation.name} ${status}`);
  }

  get seen(): string[] {
    return [...this.#seen].sort();
  }

  get documented(): string[] {
    const all = new Set<string>();
    for (const operation of this.#contract.operations) {
      for (const { status, code } of this.#contract.problemsOf(operation))
        all.add(`${status === 'default' ? ANY : operation.name} ${code}`);
      const problems = new Set(this.#contract.problemsOf(operation).map(({ status }) => status));
      for (const status of Object.keys(operation.operation.responses))
        if (!problems.has(status)) all.add(`${operation.name} ${status}`);
    }
    const { RefusedEvent } = this.#contract.document.components.schemas;
    const { error } = RefusedEvent!.properties as { error: Parameters<typeof codesOf>[0] };
    for (const code of codesOf(error)) all.add(`${ITEM} ${code}`);
    // Problems without an operation: an unknown address or method.
    for (const code of ['not_found', 'method_not_allowed'] as const) all.add(`${ANY} ${code}`);
    return [...all].sort();
  }
}

function expectNamed(what: string, errors: readonly { path: string }[], path: string | undefined): void {
  if (path !== undefined)
    expect(
      errors.map((error) => error.path),
      what,
    ).toContain(path);
}
