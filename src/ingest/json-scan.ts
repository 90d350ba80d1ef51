/**
 * A strict JSON scanner that builds no objects. It checks a request body against RFC 8259 and returns where its values
 * begin and end. So `data` is stored and sent as the producer's own bytes: key order, big integers, `1.10` and unicode
 * escapes survive, and scanning a kilobyte takes a few microseconds.
 */
export class JsonSyntaxError extends Error {
  override name = 'JsonSyntaxError';
  readonly offset: number;
  readonly line: number;
  readonly column: number;

  constructor(problem: string, text: Buffer, offset: number) {
    let line = 1;
    let lineStart = 0;
    for (let at = 0; at < offset; at += 1) {
      if (text[at] !== LINE_BREAK) continue;
      line += 1;
      lineStart = at + 1;
    }
    const column = text.toString('utf8', lineStart, offset).length + 1;
    super(`${problem} at line ${line}, column ${column} (byte ${offset})`);
    this.offset = offset;
    this.line = line;
    this.column = column;
  }
}

export class JsonDepthError extends Error {
  override name = 'JsonDepthError';
}

/** An object has so many fields that it cannot be a request. */
export class JsonFieldsError extends Error {
  override name = 'JsonFieldsError';
}

const MAX_SHOWN_NAME = 100;

export interface Span {
  readonly start: number;
  readonly end: number;
}

const LINE_BREAK = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const MINUS = 0x2d;

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;

function describe(text: Buffer, at: number): string {
  if (at >= text.length) return 'unexpected end of JSON';
  const character = text.subarray(at, at + 4).toString('utf8')[0];
  return `unexpected ${JSON.stringify(character)}`;
}

function fail(text: Buffer, at: number, problem = describe(text, at)): never {
  throw new JsonSyntaxError(problem, text, Math.min(at, text.length));
}

export function skipSpace(text: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = text[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** `from` is at the opening quote; returns the position after the closing one. */
function skipString(text: Buffer, from: number): number {
  let at = from + 1;
  for (;;) {
    const byte = text[at];
    if (byte === QUOTE) return at + 1;
    if (byte === undefined) fail(text, at, 'unterminated string');
    if (byte < 0x20) fail(text, at, 'control character in a string');
    at = byte === BACKSLASH ? skipEscape(text, at) : at + 1;
  }
}

function skipEscape(text: Buffer, from: number): number {
  switch (text[from + 1]) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return from + 2;
    case 0x75: {
      for (let i = from + 2; i < from + 6; i += 1) {
        const byte = text[i];
        const hexadecimal =
          isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
        if (!hexadecimal) fail(text, i, 'bad unicode escape');
      }
      return from + 6;
    }
    default:
      return fail(text, from + 1, 'bad escape in a string');
  }
}

function skipDigits(text: Buffer, from: number): number {
  let at = from;
  while (isDigit(text[at])) at += 1;
  if (at === from) fail(text, at);
  return at;
}

function skipNumber(text: Buffer, from: number): number {
  let at = text[from] === MINUS ? from + 1 : from;
  at = text[at] === 0x30 ? at + 1 : skipDigits(text, at);
  if (text[at] === 0x2e) at = skipDigits(text, at + 1);
  if (text[at] === 0x65 || text[at] === 0x45) {
    at += 1;
    if (text[at] === 0x2b || text[at] === MINUS) at += 1;
    at = skipDigits(text, at);
  }
  return at;
}

const LITERALS: Record<number, Buffer> = {
  116: Buffer.from('true'),
  102: Buffer.from('false'),
  110: Buffer.from('null'),
};

function skipScalar(text: Buffer, at: number): number {
  const byte = text[at];
  if (byte === QUOTE) return skipString(text, at);
  if (byte === MINUS || isDigit(byte)) return skipNumber(text, at);
  const literal = byte === undefined ? undefined : LITERALS[byte];
  if (literal === undefined) return fail(text, at);
  for (let i = 1; i < literal.length; i += 1) if (text[at + i] !== literal[i]) fail(text, at);
  return at + literal.length;
}

/** `from` is at a key; returns the position of its value. */
function skipKey(text: Buffer, from: number): number {
  if (text[from] !== QUOTE) fail(text, from);
  const at = skipSpace(text, skipString(text, from));
  if (text[at] !== COLON) fail(text, at);
  return skipSpace(text, at + 1);
}

/** Skips one value of any kind; `from` is at its first byte. Returns the position after its last. No recursion. */
export function skipValue(text: Buffer, from: number, maxDepth: number): number {
  const value = new ValueSkipper(text, from, maxDepth);
  value.skipTo(text.length);
  return value.end!;
}

/** Skips one value in parts, for a value so long that the process must do other work meanwhile. */
export class ValueSkipper {
  /** The position after the value. Null until then. */
  end: number | null = null;
  readonly #text: Buffer;
  readonly #maxDepth: number;
  /** The closing brackets of the containers that are open. */
  readonly #open: number[] = [];
  /** At the start of a value. */
  #at: number;

  constructor(text: Buffer, from: number, maxDepth: number) {
    this.#text = text;
    this.#at = from;
    this.#maxDepth = maxDepth;
  }

  /** Goes on until the value ends or the next value in it starts behind `limit`. */
  skipTo(limit: number): void {
    const text = this.#text;
    const open = this.#open;
    let at = this.#at;
    do {
      const byte = text[at];
      if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        const close = byte + 2;
        if (open.length >= this.#maxDepth)
          throw new JsonDepthError(`nested deeper than ${this.#maxDepth} levels`);
        at = skipSpace(text, at + 1);
        if (text[at] !== close) {
          open.push(close);
          if (byte === OPEN_OBJECT) at = skipKey(text, at);
          continue;
        }
        at += 1;
      } else {
        at = skipScalar(text, at);
      }
      // After a value: close the containers that end here, then continue with the next value.
      for (;;) {
        const close = open[open.length - 1];
        if (close === undefined) {
          this.end = at;
          return;
        }
        at = skipSpace(text, at);
        if (text[at] === close) {
          open.pop();
          at += 1;
          continue;
        }
        if (text[at] !== COMMA) fail(text, at);
        at = skipSpace(text, at + 1);
        if (close === CLOSE_OBJECT) at = skipKey(text, at);
        break;
      }
    } while (at <= limit);
    this.#at = at;
  }
}

/** The name of a field as an error may show it. */
export const shortName = (name: string): string =>
  name.length > MAX_SHOWN_NAME ? `${name.slice(0, MAX_SHOWN_NAME)}…` : name;

/**
 * Walks through the fields of the object that starts at `from`: yields each name with the position of its value, and expects the
 * position after the value. Returns the position after the object. Throws JsonFieldsError at the first field beyond `maxFields`.
 */
export function* walkObject(
  text: Buffer,
  from: number,
  maxFields = Number.POSITIVE_INFINITY,
): Generator<{ readonly name: string; readonly start: number }, number, number> {
  const names = new Set<string>();
  let at = skipSpace(text, from + 1);
  if (text[at] === CLOSE_OBJECT) return at + 1;
  for (;;) {
    if (text[at] !== QUOTE) fail(text, at);
    const name = JSON.parse(text.toString('utf8', at, skipString(text, at))) as string;
    if (names.has(name)) fail(text, at, `the field ${JSON.stringify(shortName(name))} appears twice`);
    if (names.size >= maxFields) throw new JsonFieldsError(`must have at most ${maxFields} fields`);
    names.add(name);
    at = skipSpace(text, yield { name, start: skipKey(text, at) });
    if (text[at] === CLOSE_OBJECT) return at + 1;
    if (text[at] !== COMMA) fail(text, at);
    at = skipSpace(text, at + 1);
  }
}

/** Returns the fields of the object that starts at `from`, as spans of their values, and the position after the object. */
export function scanObject(
  text: Buffer,
  from: number,
  maxDepth: number,
  maxFields?: number,
): { readonly fields: Map<string, Span>; readonly end: number } {
  const fields = new Map<string, Span>();
  const walk = walkObject(text, from, maxFields);
  let step = walk.next();
  while (!step.done) {
    const { name, start } = step.value;
    const end = skipValue(text, start, maxDepth);
    fields.set(name, { start, end });
    step = walk.next(end);
  }
  return { fields, end: step.value };
}

/**
 * Walks through the elements of the array that starts at `from`: yields the position of each, and expects the position after it.
 * Returns the position after the array.
 */
export function* walkArray(text: Buffer, from: number): Generator<number, number, number> {
  let at = skipSpace(text, from + 1);
  if (text[at] === CLOSE_ARRAY) return at + 1;
  for (;;) {
    at = skipSpace(text, yield at);
    if (text[at] === CLOSE_ARRAY) return at + 1;
    if (text[at] !== COMMA) fail(text, at);
    at = skipSpace(text, at + 1);
  }
}

export const startsObject = (text: Buffer, at: number): boolean => text[at] === OPEN_OBJECT;
export const startsArray = (text: Buffer, at: number): boolean => text[at] === OPEN_ARRAY;

/** Throws if anything but space follows the body. */
export function expectEnd(text: Buffer, from: number): void {
  const at = skipSpace(text, from);
  if (at !== text.length) fail(text, at);
}

/** Checks a whole text. Throws JsonSyntaxError or JsonDepthError. */
export function expectJson(text: Buffer, maxDepth: number): void {
  expectEnd(text, skipValue(text, skipSpace(text, 0), maxDepth));
}
