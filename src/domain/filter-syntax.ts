/** From JSON to a filter that can be asked, or to what is wrong with it and where. docs/filters.md says what is meant. */
import {
  type FilterNode,
  type FilterScalar,
  type FilterSubject,
  filterRoots,
  type PathStep,
  shown,
} from './filter.ts';
import type { FieldError } from './problem.ts';

/** They bound the memory and the work of a filter, in every process and for every event. */
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
  if (!isObject(json)) return refused({ path: at, message: 'must be an object, or null for none' });
  const parser = new Parser();
  // Before its size is taken, which goes as deep as it is nested.
  const filter = parser.all(json, at, null, 1);
  if (parser.errors.length > 0) return refused(...parser.errors);
  if (JSON.stringify(json).length > MAX_JSON_LENGTH)
    return refused({ path: at, message: `must have at most ${MAX_JSON_LENGTH} characters as JSON` });
  return { ok: true, filter };
}

const refused = (...errors: FieldError[]): ParsedFilter => ({ ok: false, errors });

/** Where a condition looks. */
interface Path {
  readonly root: (subject: FilterSubject) => unknown;
  readonly steps: readonly PathStep[];
}

/** Stands for what could not be parsed: it is never asked. */
const NOTHING: FilterNode = { kind: 'all', at: '', of: [] };

class Parser {
  readonly errors: FieldError[] = [];
  #conditions = 0;

  /** An object: every key of it must hold. `path` is null at the top. */
  all(json: Record<string, unknown>, at: string, path: Path | null, depth: number): FilterNode {
    const entries = Object.entries(json);
    if (entries.length === 0 && depth > 1) return this.#refuse(at, 'must have at least one condition');
    const of: FilterNode[] = [];
    for (const [key, value] of entries) {
      // One more than enough is known to be wrong: no need to look at all of something huge.
      if (this.errors.length >= MAX_ERRORS || this.#conditions > MAX_CONDITIONS) break;
      of.push(this.#entry(key, value, `${at}.${short(key)}`, path, depth));
    }
    return of.length === 1 ? of[0]! : { kind: 'all', at: shownPlace(at), of };
  }

  #entry(key: string, value: unknown, at: string, path: Path | null, depth: number): FilterNode {
    if (key === '$and' || key === '$or') {
      if (!Array.isArray(value) || value.length === 0)
        return this.#refuse(at, 'must be an array of at least one filter');
      const of: FilterNode[] = [];
      for (const [index, part] of value.entries()) {
        if (this.errors.length >= MAX_ERRORS || this.#conditions > MAX_CONDITIONS) break;
        of.push(this.#filter(part, `${at}[${index}]`, path, depth + 1));
      }
      return { kind: key === '$and' ? 'all' : 'any', at: shownPlace(at), of };
    }
    if (key === '$not') return { kind: 'not', at: shownPlace(at), of: this.#filter(value, at, path, depth) };
    if (key.startsWith('$')) return this.#operator(key, value, at, path);
    const longer = extend(path, key);
    if (typeof longer === 'string') return this.#refuse(at, longer);
    return isScalar(value)
      ? this.#operator('$eq', value, at, longer)
      : this.#filter(value, at, longer, depth);
  }

  /** Something that must be an object, one level further down. */
  #filter(json: unknown, at: string, path: Path | null, depth: number): FilterNode {
    if (depth >= MAX_NESTING) return this.#refuse(at, `is nested more than ${MAX_NESTING} deep`);
    if (isObject(json)) return this.all(json, at, path, depth + 1);
    return this.#refuse(
      at,
      path === null
        ? 'must be an object'
        : 'must be a text, number, boolean, null, or an object with operators',
    );
  }

  #operator(name: string, operand: unknown, at: string, path: Path | null): FilterNode {
    this.#conditions += 1;
    if (this.#conditions > MAX_CONDITIONS)
      return this.#refuse(at, `is one condition too many: at most ${MAX_CONDITIONS} are allowed`);
    const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name]! : null;
    if (operator === null)
      return this.#refuse(
        at,
        `is not an operator; there are ${Object.keys(OPERATORS).join(' ')} $and $or $not`,
      );
    if (path === null)
      return this.#refuse(at, 'needs a path before it, such as {"data.amount": {"$gte": 100}}');
    const wrong = operator.check(operand);
    if (wrong !== null) return this.#refuse(`${at}${wrong.at}`, wrong.message);
    return {
      kind: 'test',
      at: shownPlace(at),
      ...path,
      fits: operator.fits(operand),
      negated: operator.negated ?? operand === false,
      wanted: operator.wanted(operand),
    };
  }

  #refuse(path: string, message: string): FilterNode {
    this.errors.push({ path, message });
    return NOTHING;
  }
}

interface Wrong {
  readonly at: string;
  readonly message: string;
}

interface Operator {
  check(operand: unknown): Wrong | null;
  fits(operand: unknown): (value: unknown) => boolean;
  /** Absent: the operand says it (`$exists: false`). */
  readonly negated?: boolean;
  wanted(operand: unknown): string;
}

const ordering = (
  words: string,
  numbers: (a: number, b: number) => boolean,
  texts: (a: string, b: string) => boolean,
): Operator => ({
  check: (operand) =>
    typeof operand === 'number' || typeof operand === 'string'
      ? checkScalar(operand)
      : wrong('must be a number or a text'),
  fits: (operand) =>
    typeof operand === 'number'
      ? (value) => typeof value === 'number' && numbers(value, operand)
      : (value) => typeof value === 'string' && texts(value, operand as string),
  negated: false,
  wanted: (operand) => `${words} ${shown(operand)}`,
});

const affix = (words: string, test: (value: string, operand: string) => boolean): Operator => ({
  check: (operand) => (typeof operand === 'string' ? checkScalar(operand) : wrong('must be a text')),
  fits: (operand) => (value) => typeof value === 'string' && test(value, operand as string),
  negated: false,
  wanted: (operand) => `a text that ${words} ${shown(operand)}`,
});

const equality = (negated: boolean): Operator => ({
  check: checkScalar,
  fits: (operand) => (value) => value === operand,
  negated,
  wanted: (operand) => `equal to ${shown(operand)}`,
});

const choice = (negated: boolean): Operator => ({
  check: checkChoices,
  fits: (operand) => {
    const choices = new Set<unknown>(operand as FilterScalar[]);
    return (value) => choices.has(value);
  },
  negated,
  wanted: (operand) => `one of the ${(operand as FilterScalar[]).length} given`,
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
    check: (operand) => (typeof operand === 'boolean' ? null : wrong('must be true or false')),
    fits: () => () => true,
    wanted: () => 'there',
  },
  $prefix: affix('begins with', (value, operand) => value.startsWith(operand)),
  $suffix: affix('ends with', (value, operand) => value.endsWith(operand)),
};

const wrong = (message: string, at = ''): Wrong => ({ at, message });

function checkScalar(operand: unknown): Wrong | null {
  if (!isScalar(operand)) return wrong('must be a text, number, boolean or null');
  if (typeof operand === 'string' && operand.length > MAX_TEXT_LENGTH)
    return wrong(`must have at most ${MAX_TEXT_LENGTH} characters`);
  // Beyond it neighbours are the same number: a filter on one would let others through.
  if (typeof operand === 'number' && !(Math.abs(operand) <= Number.MAX_SAFE_INTEGER))
    return wrong(`must be at most ${Number.MAX_SAFE_INTEGER} away from zero; longer ids belong in texts`);
  return null;
}

function checkChoices(operand: unknown): Wrong | null {
  if (!Array.isArray(operand) || operand.length === 0 || operand.length > MAX_CHOICES)
    return wrong(`must be an array of 1 to ${MAX_CHOICES} texts, numbers, booleans or nulls`);
  for (const [index, item] of operand.entries()) {
    const found = checkScalar(item);
    if (found !== null) return wrong(found.message, `[${index}]`);
  }
  return null;
}

/** The path with the names of `key` after it, or what is wrong with them. */
function extend(path: Path | null, key: string): Path | string {
  if (key.length > MAX_PATH_LENGTH) return `must have at most ${MAX_PATH_LENGTH} characters`;
  const names = splitPath(key);
  if (names === null)
    return 'has an empty name, or a backslash before something else than a dot or a backslash';
  const [first, ...rest] = names as [string, ...string[]];
  let root = path?.root;
  let steps = path?.steps ?? [];
  if (root === undefined) {
    if (!Object.hasOwn(filterRoots, first))
      return `must begin with one of ${Object.keys(filterRoots).join(', ')}, such as "data.${short(key)}"`;
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

/** By dots, unless a backslash takes their meaning away. Null: not a path. */
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

/** As it is named in errors: not at any length. */
const short = (key: string): string => (key.length > 80 ? `${key.slice(0, 80)}…` : key);

/** `filter.data.amount.$gte` → `data.amount.$gte` */
const shownPlace = (at: string): string => at.slice(at.indexOf('.') + 1);
