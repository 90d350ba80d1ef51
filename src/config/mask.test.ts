import { expect, it } from 'vitest';
import { maskUrl } from './mask.ts';

it.each([
  ['postgres://user:secret@host:5432/db', 'postgres://user:****@host:5432/db'],
  ['postgres://user@host/db', 'postgres://user@host/db'],
  ['postgres://host/db', 'postgres://host/db'],
  ['postgres://user:se@cr#et?x@host/db', 'postgres://user:****@host/db'],
  ['postgres://user:a:b:c@host/db', 'postgres://user:****@host/db'],
  [
    'postgres:///db?host=/tmp&user=u&password=secret&x=1',
    'postgres:///db?host=/tmp&user=u&password=****&x=1',
  ],
  ['http://:secret@proxy', 'http://:****@proxy'],
  ['secret', '****'],
  ['host=h password=secret', '****'],
])('%s', (url, expected) => {
  expect(maskUrl(url)).toBe(expected);
});
