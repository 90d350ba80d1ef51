import { describe, expect, it } from 'vitest';
import { appendRawMember, indentTokens, sliceMember, tokenize } from './json-text.ts';

const indent = (text: string): string =>
  indentTokens(tokenize(text))
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
  ])('indents %s', (text, expected) => {
    expect(indent(text)).toBe(expected);
    expect(JSON.parse(indent(text))).toEqual(JSON.parse(text));
  });

  it('keeps every digit of a number', () => {
    for (const number of ['12345678901234567890', '1.10', '-0', '1e400', '0.1000'])
      expect(indent(`{"n":${number}}`)).toBe(`{\n  "n": ${number}\n}`);
  });

  it('finds a member of the outer object, not a nested one of the same name', () => {
    const text = '{"id":"evt_1","headers":{"data":"no"},"list":["data"],"data": {"data": 1.10, "b": [2]} }';
    expect(sliceMember(text, 'data')).toBe('{"data": 1.10, "b": [2]}');
    expect(sliceMember(text, 'id')).toBe('"evt_1"');
    expect(sliceMember(text, 'none')).toBeNull();
    expect(sliceMember('{"data":null}', 'data')).toBe('null');
    expect(sliceMember('{"a":"\\"data\\":1","data":2}', 'data')).toBe('2');
  });

  it('appends typed JSON without changing it, and rejects invalid JSON', () => {
    expect(appendRawMember({ type: 'a' }, 'data', '{"n": 1.10}')).toBe('{"type":"a","data":{"n": 1.10}}');
    expect(appendRawMember({}, 'data', '12345678901234567890')).toBe('{"data":12345678901234567890}');
    expect(() => appendRawMember({}, 'data', '1, "type": "b"')).toThrow('not valid JSON');
  });
});
