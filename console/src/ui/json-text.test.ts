import { describe, expect, it } from 'vitest';
import { layOut, rawMember, tokensOf, withRawMember } from './json-text.ts';

const laidOut = (text: string): string =>
  layOut(tokensOf(text))
    .map((part) => (typeof part === 'string' ? part : part.text))
    .join('');

describe('JSON as text', () => {
  it.each([
    ['{}', '{}'],
    ['[]', '[]'],
    ['{"a":{},"b":[]}', '{\n  "a": {},\n  "b": []\n}'],
    ['{"a":[1,2]}', '{\n  "a": [\n    1,\n    2\n  ]\n}'],
    ['"a, {b}: [c]"', '"a, {b}: [c]"'],
    ['{"a":"}","b":"\\"{"}', '{\n  "a": "}",\n  "b": "\\"{"\n}'],
  ])('lays %s out', (text, expected) => {
    expect(laidOut(text)).toBe(expected);
    expect(JSON.parse(laidOut(text))).toEqual(JSON.parse(text));
  });

  it('keeps numbers as they were written', () => {
    for (const number of ['12345678901234567890', '1.10', '-0', '1e400', '0.1000'])
      expect(laidOut(`{"n":${number}}`)).toBe(`{\n  "n": ${number}\n}`);
  });

  it('finds a member of the object, not one of the same name inside of it', () => {
    const text = '{"id":"evt_1","headers":{"data":"no"},"list":["data"],"data": {"data": 1.10, "b": [2]} }';
    expect(rawMember(text, 'data')).toBe('{"data": 1.10, "b": [2]}');
    expect(rawMember(text, 'id')).toBe('"evt_1"');
    expect(rawMember(text, 'none')).toBeNull();
    expect(rawMember('{"data":null}', 'data')).toBe('null');
    expect(rawMember('{"a":"\\"data\\":1","data":2}', 'data')).toBe('2');
  });

  it('puts typed JSON into an object as it was typed', () => {
    expect(withRawMember({ type: 'a' }, 'data', '{"n": 1.10}')).toBe('{"type":"a","data":{"n": 1.10}}');
    expect(withRawMember({}, 'data', '12345678901234567890')).toBe('{"data":12345678901234567890}');
    expect(() => withRawMember({}, 'data', '1, "type": "b"')).toThrow('not valid JSON');
  });
});
