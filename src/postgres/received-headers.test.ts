import { expect, test } from 'vitest';
import { packReceivedHeaders, parseReceivedHeaders } from './received-headers.ts';

test('headers come back as they were received, and usual names take a byte or two', () => {
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': '2',
    'x-own': 'a "quoted" ü',
    '0': 'a number as a name',
    '': '',
  };
  const text = packReceivedHeaders(headers);
  expect(parseReceivedHeaders(text)).toEqual(headers);
  expect(packReceivedHeaders({ 'content-length': '2' })).toBe('[1,"2"]');
  expect(packReceivedHeaders({})).toBe('[]');
});

test('a header named "__proto__" is a header', () => {
  const headers = JSON.parse('{"__proto__":"x","a":"b"}') as Record<string, string>;
  expect(JSON.stringify(parseReceivedHeaders(packReceivedHeaders(headers)))).toBe(
    '{"__proto__":"x","a":"b"}',
  );
});

test('headers that an earlier release stored, and numbers of a later one, can be read', () => {
  expect(parseReceivedHeaders('{"server":"x"}')).toEqual({ server: 'x' });
  expect(parseReceivedHeaders('[1,"2",9999,"y"]')).toEqual({ 'content-length': '2', 'header-9999': 'y' });
});
