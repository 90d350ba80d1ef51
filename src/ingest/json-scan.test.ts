import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  expectEnd,
  JsonDepthError,
  JsonSyntaxError,
  type Span,
  scanObject,
  skipSpace,
  skipValue,
  ValueSkipper,
  walkArray,
  walkObject,
} from './json-scan.ts';

/** Scans a whole text as one value, like a body. */
function scan(text: Buffer, maxDepth = 10_000): { start: number; end: number } {
  const start = skipSpace(text, 0);
  const end = skipValue(text, start, maxDepth);
  expectEnd(text, end);
  return { start, end };
}

function isValid(text: string): boolean {
  try {
    scan(Buffer.from(text));
    return true;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function failureOf(text: string, maxDepth = 64): JsonSyntaxError {
  try {
    scan(Buffer.from(text), maxDepth);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
    throw error;
  }
  throw new Error(`${text} was taken for JSON`);
}

const spacing = fc.constantFrom(undefined, 0, 1, 2, '\t', '\r\n' as string);

describe('the JSON scanner', () => {
  it('accepts everything that JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), spacing, (value, indent) => {
        const text = ` \n${JSON.stringify(value, null, indent)}\t `;
        const buffer = Buffer.from(text);
        const { start, end } = scan(buffer);
        expect(JSON.parse(buffer.toString('utf8', start, end))).toEqual(JSON.parse(text));
        expect(buffer.toString('utf8', start, end)).toBe(text.trim());
      }),
      { numRuns: 500 },
    );
  });

  it('agrees with JSON.parse on any text', () => {
    const pieces = fc.constantFrom(
      '{', '}', '[', ']', ',', ':', '"', '\\', 'a', 'u00e9', '\\u00', '0', '1', '-', '.', 'e', 'E', '+', '1e5',
      'true', 'false', 'null', 'nul', ' ', '\n', '\t', '\u0000', '\u001f', '\u007f', 'é', '😀', '\u2028', '\ufeff', '/',
    ); // biome-ignore format: a list of pieces
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        expect({ text, valid: isValid(text) }).toEqual({ text, valid: parses(text) });
      }),
      { numRuns: 5_000 },
    );
  });

  it('agrees with JSON.parse on JSON that was damaged in one place', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.nat(),
        fc.constantFrom('delete', 'double', 'replace'),
        fc.constantFrom('"', ',', '}', ']', '0', '-', '\\', 'x', ' '),
        (value, seed, how, by) => {
          const text = JSON.stringify(value);
          const at = seed % text.length;
          const rest = text.slice(how === 'double' ? at : at + 1);
          const middle = how === 'delete' ? '' : how === 'double' ? text[at]! : by;
          const damaged = text.slice(0, at) + middle + rest;
          // A lone surrogate cannot be encoded in UTF-8.
          fc.pre(damaged.isWellFormed());
          expect({ damaged, valid: isValid(damaged) }).toEqual({ damaged, valid: parses(damaged) });
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('ACC-5: leaves every value as it was written', () => {
    const values = {
      big: '12345678901234567890123',
      price: '1.10',
      exponent: '-0.0e+00',
      text: '"\\u00e9\\/é\\ud83d"',
      nested: '{"b" : [1 , 2],"a":{}}',
    };
    const text = Buffer.from(
      `{ ${Object.entries(values)
        .map(([name, value]) => `"${name}"  :\n${value}`)
        .join(' , ')} }`,
    );
    const { fields, end } = scanObject(text, 0, 64);
    expect(end).toBe(text.length);
    const found = [...fields].map(([name, span]) => [name, text.toString('utf8', span.start, span.end)]);
    expect(Object.fromEntries(found)).toEqual(values);
  });

  it('finds the elements of an array', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 10 }), spacing, (values, indent) => {
        const text = Buffer.from(JSON.stringify(values, null, indent));
        const items: Span[] = [];
        const walk = walkArray(text, 0);
        let step = walk.next();
        while (!step.done) {
          const item = { start: step.value, end: skipValue(text, step.value, 1000) };
          items.push(item);
          step = walk.next(item.end);
        }
        expect(step.value).toBe(text.length);
        expect(items.map(({ start, end }) => JSON.parse(text.toString('utf8', start, end)))).toEqual(
          JSON.parse(text.toString()),
        );
      }),
    );
  });

  it('walks through the fields of an object', () => {
    const text = Buffer.from('{"a": [1], "list": [ {"x": [2]} , 3 ], "b": 4}');
    const found: [string, string][] = [];
    const walk = walkObject(text, 0);
    let step = walk.next();
    while (!step.done) {
      const { name, start } = step.value;
      const end = skipValue(text, start, 64);
      found.push([name, text.toString('utf8', start, end)]);
      step = walk.next(end);
    }
    expect(found).toEqual([
      ['a', '[1]'],
      ['list', '[ {"x": [2]} , 3 ]'],
      ['b', '4'],
    ]);
    expect(step.value).toBe(text.length);
  });

  it('skips a value in parts as it does at once', () => {
    fc.assert(
      fc.property(fc.jsonValue(), spacing, fc.integer({ min: 1, max: 20 }), (value, indent, step) => {
        const text = Buffer.from(JSON.stringify(value, null, indent));
        const parts = new ValueSkipper(text, 0, 1000);
        for (let limit = 0; parts.end === null; limit += step) parts.skipTo(limit);
        expect(parts.end).toBe(skipValue(text, 0, 1000));
      }),
    );
  });

  it('ACC-7: rejects deep nesting, without recursion', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(() => scan(Buffer.from(nested(64)), 64)).not.toThrow();
    expect(() => scan(Buffer.from(nested(65)), 64)).toThrow(JsonDepthError);
    expect(() => scan(Buffer.from('{"a":'.repeat(65) + 1 + '}'.repeat(65)), 64)).toThrow(JsonDepthError);
    expect(() => scan(Buffer.from('['.repeat(5_000_000)), 64)).toThrow(JsonDepthError);
    expect(isValid(nested(9_999))).toBe(true);
  });

  it.each([
    ['{"a":1,"a":2}', 7],
    ['{"a":1,"\\u0061":2}', 7],
  ])('rejects a field that appears twice: %s', (text, offset) => {
    expect(() => scanObject(Buffer.from(text), 0, 64)).toThrow(/appears twice/);
    try {
      scanObject(Buffer.from(text), 0, 64);
    } catch (error) {
      expect((error as JsonSyntaxError).offset).toBe(offset);
    }
  });

  it('keeps a field called __proto__ like any other', () => {
    const { fields } = scanObject(Buffer.from('{"__proto__":1}'), 0, 64);
    expect([...fields.keys()]).toEqual(['__proto__']);
  });

  it.each([
    ['', 'unexpected end of JSON', 1, 1],
    ['{"a":1,}', 'unexpected "}"', 1, 8],
    ['{"a":1\n "b":2}', 'unexpected "\\""', 2, 2],
    ['[1,\n2,\n  tru]', 'unexpected "t"', 3, 3],
    ['["é😀", x]', 'unexpected "x"', 1, 9],
    ['"abc', 'unterminated string', 1, 5],
    ['"a\nb"', 'control character in a string', 1, 3],
    ['"\\x"', 'bad escape in a string', 1, 3],
    ['"\\u12g4"', 'bad unicode escape', 1, 6],
    ['01', 'unexpected "1"', 1, 2],
    ['1.', 'unexpected end of JSON', 1, 3],
    ['{}{}', 'unexpected "{"', 1, 3],
  ])('ACC-7: says where the mistake is: %s', (text, problem, line, column) => {
    const error = failureOf(text);
    expect(error.message).toContain(problem);
    expect({ line: error.line, column: error.column }).toEqual({ line, column });
  });

  it('reports a position within the text for every error', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!isValid(text));
        const { offset } = failureOf(text, 1000);
        expect(offset).toBeGreaterThanOrEqual(0);
        expect(offset).toBeLessThanOrEqual(Buffer.byteLength(text));
      }),
    );
  });
});
