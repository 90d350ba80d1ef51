/** What the API says it may answer, and what has been seen: operation by operation, code by code. */
import { expect } from 'vitest';
import { type ProblemCode, problemCodes } from '../../src/domain/problem.ts';
import { type ApiOperation, type Contract, codesOf } from './contract.ts';
import type { Answer } from './posthorn.ts';

/** Stands for every operation: what may happen whatever was asked for. */
export const ANY = 'any';
/** One event of a batch, which is refused by itself. */
export const ITEM = 'publishBatch item';

/** These say when to come back. */
const COME_BACK = new Set<ProblemCode>(['rate_limited', 'overloaded', 'unavailable', 'request_in_progress']);

export class ProblemMatrix {
  readonly #contract: Contract;
  readonly #seen = new Set<string>();

  constructor(contract: Contract) {
    this.#contract = contract;
  }

  /** Those that say they may answer it. */
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

  /** It is this problem, as documented, and names the field if there is one. */
  refused(operation: ApiOperation, code: ProblemCode, answer: Answer, path?: string): void {
    const { status } = problemCodes[code];
    const what = `${operation.name}: ${answer.text}`;
    expect({ status: answer.status, code: answer.body?.code }, what).toEqual({ status, code });
    expect(this.#contract.violation(operation, answer)).toBeNull();
    expectNamed(what, answer.body.errors, path);
    // Whoever is told that something is wrong is told what.
    if (code === 'invalid') expect(answer.body.errors, what).not.toEqual([]);
    expect(answer.body.request_id, what).toBe(answer.headers['x-request-id']);
    if (COME_BACK.has(code)) expect(Number(answer.headers['retry-after']), what).toBeGreaterThan(0);
    this.#seen.add(`${operation.name} ${code}`);
  }

  refusedItem(code: ProblemCode, item: { error?: Answer['body'] }, path?: string): void {
    expect(item.error, JSON.stringify(item)).toMatchObject({ status: problemCodes[code].status, code });
    expectNamed(ITEM, item.error.errors, path);
    this.#seen.add(`${ITEM} ${code}`);
  }

  /** Whatever was asked for. */
  refusedAnyhow(code: ProblemCode, answer: { status: number; body: Answer['body'] }): void {
    expect(answer).toMatchObject({ status: problemCodes[code].status, body: { code } });
    this.#seen.add(`${ANY} ${code}`);
  }

  /** With a status that is no problem: it did what it should, or says in its own way that it cannot. */
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
    // Of no operation at all: there is none at that address, or none with that method.
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
