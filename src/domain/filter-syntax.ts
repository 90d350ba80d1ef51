/** Parses a filter from JSON, or returns what is wrong with it and where. docs/filters.md describes the syntax. */
import {
  describeValue,
  type FilterNode,
  type FilterScalar,
  type FilterSubject,
  filterRoots,
  type PathStep,
} from './filter.ts';
import type { FieldError } from './problem.ts';

/** These limits bound the memory and the work that a filter can take. */
const MAX_JSON_LENGTH = 16 * 1024;
const MAX_CONDITIONS = 100;
const MAX_NESTING = 10;
const MAX_PATH_LENGTH = 256;
const MAX_PATH_NAMES = 16;
const MAX_TEXT_LENGTH = 1024;
const MAX_CHOICES = 200;
const MAX_ERRORS = 20;

export type ParsedFilter =
  | { readonly ok: true; readonly filter: FilterNode }
  | { readonly ok: false; readonly errors: readonly FieldError[] };

/** `json` is any JSON value. */
export function parseFilter(json: unknown): ParsedFilter {
  const at = 'filter';
  if (!isObject(json)) return failed({ path: at, message: 'must be an object, or null for none' });
  const parser = new Parser();
  // Parse first: parsing limits the nesting, and JSON.stringify recurses once per level.
  const filter = parser.parseObject(json, at, null, 1);
  if (parser.errors.length > 0) return failed(...parser.errors);
  if (JSON.stringify(json).length > MAX_JSON_LENGTH)
    return failed({ path: at, message: `must have at most ${MAX_JSON_LENGTH} characters as JSON` });
  return { ok: true, filter };
}

const failed = (...errors: FieldError[]): ParsedFilter => ({ ok: false, errors });

/** Where a condition finds its values. */
interface Path {
  readonly root: (subject: FilterSubject) => unknown;
  readonly steps: readonly PathStep[];
}

/** A placeholder for a part that could not be parsed. It is never evaluated. */
const UNPARSED: FilterNode = { kind: 'all', at: '', parts: [] };

class Parser {
  readonly errors: FieldError[] = [];
  #conditions = 0;

  /** Parses an object: all its entries must hold. `path` is null at the top. */
  parseObject(json: Record<string, unknown>, at: string, path: Path | null, depth: number): FilterNode {
    const entries = Object.entries(json);
    if (entries.length === 0 && depth > 1) return this.#fail(at, 'must have at least one condition');
    const parts: FilterNode[] = [];
    for (const [key, value] of entries) {
      // There are enough errors to report: do not walk through the rest of a huge filter.
      if (this.errors.length >= MAX_ERRORS || this.#conditions > MAX_CONDITIONS) break;
      parts.push(this.#parseEntry(key, value, `${at}.${shorten(key)}`, path, depth));
    }
    return parts.length === 1 ? parts[0]! : { kind: 'all', at: placeInFilter(at), parts };
  }

  #parseEntry(key: string, value: unknown, at: string, path: Path | null, depth: number): FilterNode {
    if (key === '$and' || key === '$or') {
      if (!Array.isArray(value) || value.length === 0)
        return this.#fail(at, 'must be an array of at least one filter');
      const parts: FilterNode[] = [];
      for (const [index, part] of value.entries()) {
        if (this.errors.length >= MAX_ERRORS || this.#conditions > MAX_CONDITIONS) break;
        parts.push(this.#parseNested(part, `${at}[${index}]`, path, depth + 1));
      }
      return { kind: key === '$and' ? 'all' : 'any', at: placeInFilter(at), parts };
    }
    if (key === '$not')
      return { kind: 'not', at: placeInFilter(at), parts: this.#parseNested(value, at, path, depth) };
    if (key.startsWith('$')) return this.#parseOperator(key, value, at, path);
    const extended = extendPath(path, key);
    if (typeof extended === 'string') return this.#fail(at, extended);
    return isScalar(value)
      ? this.#parseOperator('$eq', value, at, extended)
      : this.#parseNested(value, at, extended, depth);
  }

  /** Parses a nested filter, which must be an object. */
  #parseNested(json: unknown, at: string, path: Path | null, depth: number): FilterNode {
    if (depth >= MAX_NESTING) return this.#fail(at, `is nested more than ${MAX_NESTING} deep`);
    if (isObject(json)) return this.parseObject(json, at, path, depth + 1);
    return this.#fail(
      at,
      path === null
        ? 'must be an object'
        : 'must be a text, number, boolean, null, or an object with operators',
    );
  }

  #parseOperator(name: string, operand: unknown, at: string, path: Path | null): FilterNode {
    this.#conditions += 1;
    if (this.#conditions > MAX_CONDITIONS)
      return this.#fail(at, `is one condition too many: at most ${MAX_CONDITIONS} are allowed`);
    const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name]! : null;
    if (operator === null)
      return this.#fail(
        at,
        `is not an operator; there are ${Object.keys(OPERATORS).join(' ')} $and $or $not`,
      );
    if (path === null)
      return this.#fail(at, 'needs a path before it, such as {"data.amount": {"$gte": 100}}');
    const wrong = operator.check(operand);
    if (wrong !== null) return this.#fail(`${at}${wrong.at}`, wrong.message);
    return {
      kind: 'test',
      at: placeInFilter(at),
      ...path,
      fits: operator.fits(operand),
      negated: operator.negated ?? operand === false,
      expected: operator.expected(operand),
    };
  }

  #fail(path: string, message: string): FilterNode {
    this.errors.push({ path, message });
    return UNPARSED;
  }
}

interface OperandError {
  readonly at: string;
  readonly message: string;
}

interface Operator {
  check(operand: unknown): OperandError | null;
  fits(operand: unknown): (value: unknown) => boolean;
  /** Absent: the operand decides (`$exists: false`). */
  readonly negated?: boolean;
  expected(operand: unknown): string;
}

const ordering = (
  words: string,
  numbers: (a: number, b: number) => boolean,
  texts: (a: string, b: string) => boolean,
): Operator => ({
  check: (operand) =>
    typeof operand === 'number' || typeof operand === 'string'
      ? checkScalar(operand)
      : operandError('must be a number or a text'),
  fits: (operand) =>
    typeof operand === 'number'
      ? (value) => typeof value === 'number' && numbers(value, operand)
      : (value) => typeof value === 'string' && texts(value, operand as string),
  negated: false,
  expected: (operand) => `${words} ${describeValue(operand)}`,
});

const affix = (words: string, test: (value: string, operand: string) => boolean): Operator => ({
  check: (operand) => (typeof operand === 'string' ? checkScalar(operand) : operandError('must be a text')),
  fits: (operand) => (value) => typeof value === 'string' && test(value, operand as string),
  negated: false,
  expected: (operand) => `a text that ${words} ${describeValue(operand)}`,
});

const equality = (negated: boolean): Operator => ({
  check: checkScalar,
  fits: (operand) => (value) => value === operand,
  negated,
  expected: (operand) => `equal to ${describeValue(operand)}`,
});

const choice = (negated: boolean): Operator => ({
  check: checkChoices,
  fits: (operand) => {
    const choices = new Set<unknown>(operand as FilterScalar[]);
    return (value) => choices.has(value);
  },
  negated,
  expected: (operand) => `one of the ${(operand as FilterScalar[]).length} given`,
});

const OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: equality(false),
  $ne: equality(true),
  $gt: ordering(
    'greater than',
    (a, b) => a > b,
    (a, b) => a > b,
  ),
  $gte: ordering(
    'at least',
    (a, b) => a >= b,
    (a, b) => a >= b,
  ),
  $lt: ordering(
    'less than',
    (a, b) => a < b,
    (a, b) => a < b,
  ),
  $lte: ordering(
    'at most',
    (a, b) => a <= b,
    (a, b) => a <= b,
  ),
  $in: choice(false),
  $nin: choice(true),
  $exists: {
    check: (operand) => (typeof operand === 'boolean' ? null : operandError('must be true or false')),
    fits: () => () => true,
    expected: () => 'there',
  },
  $prefix: affix('begins with', (value, operand) => value.startsWith(operand)),
  $suffix: affix('ends with', (value, operand) => value.endsWith(operand)),
};

/** Whether a filter may have this key as an operator, such as `$gte` or `$or`. */
export const isOperatorName = (key: string): boolean =>
  Object.hasOwn(OPERATORS, key) || key === '$and' || key === '$or' || key === '$not';

const operandError = (message: string, at = ''): OperandError => ({ at, message });

function checkScalar(operand: unknown): OperandError | null {
  if (!isScalar(operand)) return operandError('must be a text, number, boolean or null');
  if (typeof operand === 'string' && operand.length > MAX_TEXT_LENGTH)
    return operandError(`must have at most ${MAX_TEXT_LENGTH} characters`);
  // Larger integers are not exact: a filter on one would match its neighbours.
  if (typeof operand === 'number' && !(Math.abs(operand) <= Number.MAX_SAFE_INTEGER))
    return operandError(
      `must be at most ${Number.MAX_SAFE_INTEGER} away from zero; use texts for longer ids`,
    );
  return null;
}

function checkChoices(operand: unknown): OperandError | null {
  if (!Array.isArray(operand) || operand.length === 0 || operand.length > MAX_CHOICES)
    return operandError(`must be an array of 1 to ${MAX_CHOICES} texts, numbers, booleans or nulls`);
  for (const [index, item] of operand.entries()) {
    const error = checkScalar(item);
    if (error !== null) return operandError(error.message, `[${index}]`);
  }
  return null;
}

/** Returns the path extended by the names in `key`, or what is wrong with them. */
function extendPath(path: Path | null, key: string): Path | string {
  if (key.length > MAX_PATH_LENGTH) return `must have at most ${MAX_PATH_LENGTH} characters`;
  const names = splitPath(key);
  if (names === null)
    return 'has an empty name, or a backslash before something else than a dot or a backslash';
  const [first, ...rest] = names as [string, ...string[]];
  let root = path?.root;
  let steps = path?.steps ?? [];
  if (root === undefined) {
    if (!Object.hasOwn(filterRoots, first))
      return `must begin with one of ${Object.keys(filterRoots).join(', ')}, such as "data.${shorten(key)}"`;
    root = filterRoots[first as keyof typeof filterRoots];
    steps = rest.map(toStep);
    if (first !== 'data' && first !== 'channels' && rest.length > 0) return `has nothing below "${first}"`;
  } else {
    steps = [...steps, ...names.map(toStep)];
  }
  return steps.length < MAX_PATH_NAMES ? { root, steps } : `must have at most ${MAX_PATH_NAMES} names`;
}

const ARRAY_INDEX = /^(0|[1-9][0-9]{0,6})$/;

const toStep = (name: string): PathStep => ({ name, index: ARRAY_INDEX.test(name) ? Number(name) : null });

/** Splits at dots that are not escaped by a backslash. Returns null if it is not a path. */
function splitPath(key: string): string[] | null {
  const names: string[] = [];
  let name = '';
  for (let i = 0; i <= key.length; i += 1) {
    const character = key[i];
    if (character === undefined || character === '.') {
      if (name === '') return null;
      names.push(name);
      name = '';
    } else if (character === '\\') {
      i += 1;
      if (key[i] !== '.' && key[i] !== '\\') return null;
      name += key[i];
    } else {
      name += character;
    }
  }
  return names;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isScalar = (value: unknown): value is FilterScalar =>
  value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

/** Shortens a key for an error message. */
const shorten = (key: string): string => (key.length > 80 ? `${key.slice(0, 80)}…` : key);

/** `filter.data.amount.$gte` → `data.amount.$gte` */
const placeInFilter = (at: string): string => at.slice(at.indexOf('.') + 1);
