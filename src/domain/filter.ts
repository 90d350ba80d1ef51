/**
 * Payload filters (docs/filters.md): the parsed form, whether an event matches, and why not. filter-syntax.ts parses
 * them. Nothing here throws, whatever the data is. Each value that is examined costs one step of the budget.
 */

/** The event as a filter sees it. */
export interface FilterSubject {
  readonly type: string;
  readonly channels: readonly string[];
  readonly schemaVersion: string | null;
  readonly idempotencyKey: string | null;
  /** Parsed JSON. */
  readonly data: unknown;
}

/** The first name of every path. */
export const filterRoots = {
  data: (subject) => subject.data,
  type: (subject) => subject.type,
  channels: (subject) => subject.channels,
  schema_version: (subject) => subject.schemaVersion ?? undefined,
  idempotency_key: (subject) => subject.idempotencyKey ?? undefined,
} as const satisfies Record<string, (subject: FilterSubject) => unknown>;

export interface PathStep {
  readonly name: string;
  /** The array index that the name stands for. Null: the path continues in each element. */
  readonly index: number | null;
}

export type FilterScalar = string | number | boolean | null;

export interface FilterTest {
  readonly kind: 'test';
  /** Its place in the filter, for messages: `data.amount.$gte`. */
  readonly at: string;
  readonly root: (subject: FilterSubject) => unknown;
  readonly steps: readonly PathStep[];
  readonly fits: (value: unknown) => boolean;
  /** True for a negated test: it holds if no value fits. */
  readonly negated: boolean;
  /** What a value must be, for messages: `at least 100`. */
  readonly expected: string;
}

export type FilterNode =
  | FilterTest
  | { readonly kind: 'all'; readonly at: string; readonly parts: readonly FilterNode[] }
  | { readonly kind: 'any'; readonly at: string; readonly parts: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly at: string; readonly parts: FilterNode };

/** The remaining steps. Below zero: the budget was exceeded, and no result is valid. */
export interface StepBudget {
  stepsLeft: number;
}

export const MAX_STEPS_PER_FILTER = 100_000;

/** A filter that exceeds its budget matches: an extra event is better than a lost one. */
export function matchesFilter(filter: FilterNode, subject: FilterSubject, budget: StepBudget): boolean {
  return holds(filter, subject, budget) || budget.stepsLeft < 0;
}

function holds(node: FilterNode, subject: FilterSubject, budget: StepBudget): boolean {
  switch (node.kind) {
    case 'test': {
      const value = node.root(subject);
      return (value !== undefined && someFits(node, value, 0, budget)) !== node.negated;
    }
    case 'all':
      return node.parts.every((part) => holds(part, subject, budget));
    case 'any':
      return node.parts.some((part) => holds(part, subject, budget));
    case 'not':
      return !holds(node.parts, subject, budget);
  }
}

/** Recurses no deeper than the path is long, and examines no value twice. */
function someFits(test: FilterTest, value: unknown, depth: number, budget: StepBudget): boolean {
  budget.stepsLeft -= 1;
  if (budget.stepsLeft < 0) return false;
  const step = test.steps[depth];
  if (!Array.isArray(value)) {
    if (step === undefined) return test.fits(value);
    return hasOwn(value, step.name) && someFits(test, value[step.name], depth + 1, budget);
  }
  if (step === undefined) {
    if (test.fits(value)) return true;
    for (const element of value) {
      budget.stepsLeft -= 1;
      if (budget.stepsLeft < 0) return false;
      if (test.fits(element)) return true;
    }
    return false;
  }
  if (step.index !== null)
    return step.index < value.length && someFits(test, value[step.index], depth + 1, budget);
  for (const element of value) {
    budget.stepsLeft -= 1;
    if (budget.stepsLeft < 0) return false;
    if (Array.isArray(element) || !hasOwn(element, step.name)) continue;
    if (someFits(test, element[step.name], depth + 1, budget)) return true;
  }
  return false;
}

/** Own properties only, never those of a prototype. */
function hasOwn(value: unknown, name: string): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name);
}

export interface FilterAnswer {
  readonly matches: boolean;
  /** The first condition that fails, in words. Null: all hold. */
  readonly reason: string | null;
}

export function explainFilter(filter: FilterNode, subject: FilterSubject): FilterAnswer {
  const budget = { stepsLeft: MAX_STEPS_PER_FILTER };
  const matches = matchesFilter(filter, subject, budget);
  if (budget.stepsLeft < 0) {
    const reason = `takes more than ${MAX_STEPS_PER_FILTER} steps on this event, and therefore matches`;
    return { matches, reason };
  }
  return { matches, reason: matches ? null : firstFailure(filter, subject) };
}

function firstFailure(node: FilterNode, subject: FilterSubject): string {
  switch (node.kind) {
    case 'test':
      return `${node.at}: ${testFailure(node, subject)}`;
    case 'all': {
      const fresh = { stepsLeft: MAX_STEPS_PER_FILTER };
      const failed = node.parts.find((part) => !holds(part, subject, fresh));
      return firstFailure(failed!, subject);
    }
    case 'any':
      return node.parts.length === 1
        ? firstFailure(node.parts[0]!, subject)
        : `${node.at}: none of its ${node.parts.length} filters holds`;
    case 'not':
      return `${node.at}: the filter that it negates holds`;
  }
}

function testFailure(test: FilterTest, subject: FilterSubject): string {
  // Report the value that decides: one that fits a negated test, otherwise the first value of the path.
  let seen: unknown;
  const fits = (value: unknown): boolean => {
    if (test.negated && !test.fits(value)) return false;
    seen = value;
    return true;
  };
  const value = test.root(subject);
  const found =
    value !== undefined && someFits({ ...test, fits }, value, 0, { stepsLeft: MAX_STEPS_PER_FILTER });
  if (!found) return 'there is no such value';
  if (Array.isArray(seen) && !test.negated)
    return `neither the array nor an element of it is ${test.expected}`;
  return `${describeValue(seen)} is ${test.negated ? '' : 'not '}${test.expected}`;
}

const MAX_DESCRIBED_LENGTH = 80;

export function describeValue(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_DESCRIBED_LENGTH) : value);
  return typeof value === 'string' && value.length > MAX_DESCRIBED_LENGTH ? `${text}…` : text;
}
