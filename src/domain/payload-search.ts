/** Search inside payloads: `data.order_id:ord_123` finds events by a value at a path of their data. */
import { type FilterTest, MAX_STEPS_PER_FILTER, matchesFilter } from './filter.ts';
import { parseFilter } from './filter-syntax.ts';

export interface PayloadSearch {
  /**
   * Byte strings that preselect stored payloads cheaply: a payload that matches contains at least one string of every
   * group. The strings of a group are the ways in which JSON can write the same text.
   */
  readonly needles: readonly (readonly Buffer[])[];
  /** Whether the payload has the value at the path. `data` is JSON. */
  matches(data: Buffer): boolean;
}

export type ParsedSearch =
  | { readonly ok: true; readonly search: PayloadSearch }
  | { readonly ok: false; readonly message: string };

const MAX_VALUE_LENGTH = 256;

/**
 * Parses `path:value`. The path has the syntax of filters. A value in double quotes matches strings only. A value without
 * quotes also matches a number, `true`, `false` or `null` with the same text.
 */
export function parsePayloadSearch(text: string): ParsedSearch {
  const colon = text.indexOf(':');
  if (colon === -1)
    return failed('must be a path and a value with a colon between, such as data.order_id:ord_123');
  const path = text.slice(0, colon).trim();
  const value = text.slice(colon + 1).trim();
  if (!/^data(\.|$)/.test(path)) return failed('must begin with the path, which begins with "data."');
  const test = parsePath(path);
  if (typeof test === 'string') return failed(`has the path "${path}", which ${test}`);
  const wanted = readValue(value);
  if (wanted === null) return failed('has a value that begins with a double quote and is not a JSON string');
  if (wanted.text === '' || wanted.text.length > MAX_VALUE_LENGTH)
    return failed(`must have a value of 1 to ${MAX_VALUE_LENGTH} characters`);
  const lookingFor: FilterTest = { ...test, fits: (found) => isSame(found, wanted) };
  return {
    ok: true,
    search: {
      needles: [spellings(wanted.text), ...lastName(test).map(spellings)],
      matches: (data) => hasValue(lookingFor, data),
    },
  };
}

const failed = (message: string): ParsedSearch => ({ ok: false, message });

/** The path as a condition that accepts every value, or what is wrong with it. */
function parsePath(path: string): FilterTest | string {
  const parsed = parseFilter({ [path]: { $exists: true } });
  if (!parsed.ok) return parsed.errors[0]!.message;
  return parsed.filter as FilterTest;
}

interface Wanted {
  readonly text: string;
  readonly isQuoted: boolean;
}

function readValue(value: string): Wanted | null {
  if (!value.startsWith('"')) return { text: value, isQuoted: false };
  try {
    const text: unknown = JSON.parse(value);
    return typeof text === 'string' ? { text, isQuoted: true } : null;
  } catch {
    return null;
  }
}

function isSame(found: unknown, { text, isQuoted }: Wanted): boolean {
  if (typeof found === 'string') return found === text;
  if (isQuoted || (typeof found === 'object' && found !== null)) return false;
  // Comparing as numbers is enough even for 12345678901234567890: the preselected payload contains all its digits.
  return String(found) === text || (typeof found === 'number' && Number(text) === found);
}

function hasValue(test: FilterTest, data: Buffer): boolean {
  const subject = {
    type: '',
    channels: [],
    schemaVersion: null,
    idempotencyKey: null,
    data: JSON.parse(data.toString()) as unknown,
  };
  const budget = { stepsLeft: MAX_STEPS_PER_FILTER };
  return matchesFilter(test, subject, budget) && budget.stepsLeft >= 0;
}

/** The last name of the path that is not an array index. Empty if there is none. */
function lastName({ steps }: FilterTest): string[] {
  const named = steps.findLast(({ index }) => index === null);
  return named === undefined ? [] : [named.name];
}

/** The ways in which JSON serializers write a text: as it is, with escaped slashes, and in ASCII only. */
function spellings(text: string): Buffer[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const toEscape = (inUpperCase: boolean) => (character: string) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, '0');
    return `\\u${inUpperCase ? code.toUpperCase() : code}`;
  };
  const all = [
    plain,
    plain.replace(/[^\x20-\x7e]/g, toEscape(false)),
    plain.replace(/[^\x20-\x7e]/g, toEscape(true)),
  ];
  return [...new Set(all.flatMap((each) => [each, each.replaceAll('/', '\\/')]))].map((each) =>
    Buffer.from(each),
  );
}
