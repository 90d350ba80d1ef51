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
  /** True if the test holds when no value fits. */
  readonly negated: boolean;
  /** What a value must be, for messages: `at least 100`. */
  readonly wanted: string;
}

export type FilterNode =
  | FilterTest
  | { readonly kind: 'all'; readonly at: string; readonly of: readonly FilterNode[] }
  | { readonly kind: 'any'; readonly at: string; readonly of: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly at: string; readonly of: FilterNode };

/** The remaining steps. Below zero: the budget was exceeded, and no result is valid. */
export interface FilterWork {
  left: number;
}

export const MAX_STEPS_PER_FILTER = 100_000;

/** A filter that exceeds its budget matches: better one event too many than one too few. */
export function matchesFilter(filter: FilterNode, subject: FilterSubject, work: FilterWork): boolean {
  return holds(filter, subject, work) || work.left < 0;
}

function holds(node: FilterNode, subject: FilterSubject, work: FilterWork): boolean {
  switch (node.kind) {
    case 'test': {
      const value = node.root(subject);
      return (value !== undefined && someFits(node, value, 0, work)) !== node.negated;
    }
    case 'all':
      return node.of.every((part) => holds(part, subject, work));
    case 'any':
      return node.of.some((part) => holds(part, subject, work));
    case 'not':
      return !holds(node.of, subject, work);
  }
}

/** Recurses no deeper than the path is long, and examines no value twice. */
function someFits(test: FilterTest, value: unknown, depth: number, work: FilterWork): boolean {
  work.left -= 1;
  if (work.left < 0) return false;
  const step = test.steps[depth];
  if (!Array.isArray(value)) {
    if (step === undefined) return test.fits(value);
    return hasOwn(value, step.name) && someFits(test, value[step.name], depth + 1, work);
  }
  if (step === undefined) {
    if (test.fits(value)) return true;
    for (const element of value) {
      work.left -= 1;
      if (work.left < 0) return false;
      if (test.fits(element)) return true;
    }
    return false;
  }
  if (step.index !== null)
    return step.index < value.length && someFits(test, value[step.index], depth + 1, work);
  for (const element of value) {
    work.left -= 1;
    if (work.left < 0) return false;
    if (Array.isArray(element) || !hasOwn(element, step.name)) continue;
    if (someFits(test, element[step.name], depth + 1, work)) return true;
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
  const work = { left: MAX_STEPS_PER_FILTER };
  const matches = matchesFilter(filter, subject, work);
  if (work.left < 0) {
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
      const fresh = { left: MAX_STEPS_PER_FILTER };
      const failed = node.of.find((part) => !holds(part, subject, fresh));
      return firstFailure(failed!, subject);
    }
    case 'any':
      return node.of.length === 1
        ? firstFailure(node.of[0]!, subject)
        : `${node.at}: none of its ${node.of.length} filters holds`;
    case 'not':
      return `${node.at}: what it negates holds`;
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
  const found = value !== undefined && someFits({ ...test, fits }, value, 0, { left: MAX_STEPS_PER_FILTER });
  if (!found) return 'there is no such value';
  if (Array.isArray(seen) && !test.negated) return `neither the array nor an element of it is ${test.wanted}`;
  return `${shown(seen)} is ${test.negated ? '' : 'not '}${test.wanted}`;
}

const MAX_SHOWN = 80;

export function shown(value: unknown): string {
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  const text = JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_SHOWN) : value);
  return typeof value === 'string' && value.length > MAX_SHOWN ? `${text}…` : text;
}
