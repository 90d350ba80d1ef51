/**
 * Payload filters, as docs/filters.md describes them: what one is once it has been parsed (filter-syntax.ts), whether
 * an event matches it, and why not. Nothing here throws, whatever the data; every value looked at is one step of the work.
 */

/** What a filter is asked about. Null: the event has none. */
export interface FilterSubject {
  readonly type: string;
  readonly channels: readonly string[];
  readonly schemaVersion: string | null;
  readonly idempotencyKey: string | null;
  /** Parsed. */
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
  /** What the name means in an array. Null: go into each element. */
  readonly index: number | null;
}

export type FilterScalar = string | number | boolean | null;

export interface FilterTest {
  readonly kind: 'test';
  /** Where it stands, for people: `data.amount.$gte`. */
  readonly at: string;
  readonly root: (subject: FilterSubject) => unknown;
  readonly steps: readonly PathStep[];
  readonly fits: (value: unknown) => boolean;
  /** It holds if no value fits. */
  readonly negated: boolean;
  /** What a value would have to do: `at least 100`. */
  readonly wanted: string;
}

export type FilterNode =
  | FilterTest
  | { readonly kind: 'all'; readonly at: string; readonly of: readonly FilterNode[] }
  | { readonly kind: 'any'; readonly at: string; readonly of: readonly FilterNode[] }
  | { readonly kind: 'not'; readonly at: string; readonly of: FilterNode };

/** Steps that may still be taken. Below zero: there were not enough, and no answer counts. */
export interface FilterWork {
  left: number;
}

export const MAX_STEPS_PER_FILTER = 100_000;

/** A filter that runs out of steps counts as matching: rather an event too many than one too few. */
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

/** Goes no deeper than the path is long, and looks at no value twice. */
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

/** Own properties only: nothing is inherited from a prototype, whatever the name is. */
function hasOwn(value: unknown, name: string): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name);
}

export interface FilterAnswer {
  readonly matches: boolean;
  /** The first condition that fails; null if none does. */
  readonly reason: string | null;
}

export function explainFilter(filter: FilterNode, subject: FilterSubject): FilterAnswer {
  const work = { left: MAX_STEPS_PER_FILTER };
  const matches = matchesFilter(filter, subject, work);
  if (work.left < 0) {
    const reason = `takes more than ${MAX_STEPS_PER_FILTER} steps on this event, and therefore counts as matching`;
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
  // The first value that speaks of the outcome: one that fits where none may, or simply the first where one should.
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
