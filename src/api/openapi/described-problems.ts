/** Problems as answers of operations: each lists its possible codes. Answers that operations share become components. */
import { type ProblemCode, problemCodes } from '../../domain/problem.ts';
import type { JsonSchema } from './components.ts';
import { PROBLEM_TYPE, type Reasons } from './describe.ts';
import { unexpectedProblems } from './implied-problems.ts';

interface Reference {
  readonly $ref: string;
}
export interface ProblemAnswer {
  readonly description: string;
  readonly content: { readonly [PROBLEM_TYPE]: { readonly schema: JsonSchema } };
}

const PLACE = '#/components/responses/';
const UNEXPECTED = 'Unexpected';

export class ProblemAnswers {
  readonly #answers = new Map<string, ProblemAnswer>();
  readonly unexpected: Reference = { $ref: `${PLACE}${UNEXPECTED}` };

  /** A reference to the answer for these codes, which have the same status and are sorted. */
  of(codes: readonly ProblemCode[]): Reference {
    const name = [`Problem${problemCodes[codes[0]!].status}`, ...codes].join('.');
    this.#answers.set(name, problemAnswer(codes));
    return { $ref: `${PLACE}${name}` };
  }

  components(): Record<string, ProblemAnswer> {
    const sorted = [...this.#answers].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries([...sorted, [UNEXPECTED, problemAnswer(unexpectedProblems)]]);
  }
}

export function problemAnswer(codes: readonly ProblemCode[], reasons: Reasons = {}): ProblemAnswer {
  return {
    description: codes
      .map((code) => `\`${code}\`: ${reasons[code] ?? `${problemCodes[code].title}.`}`)
      .join(' '),
    content: { [PROBLEM_TYPE]: { schema: withCodes(codes) } },
  };
}

const withCodes = (codes: readonly ProblemCode[]): JsonSchema => ({
  allOf: [
    { $ref: '#/components/schemas/Problem' },
    { type: 'object', required: ['code'], properties: { code: { enum: codes } } },
  ],
});
