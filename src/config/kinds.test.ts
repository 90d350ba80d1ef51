import { describe, expect, it } from 'vitest';
import {
  boolean,
  bytes,
  choice,
  cidrs,
  duration,
  Invalid,
  integer,
  integers,
  key32,
  key32List,
  number,
  type Setting,
  showBytes,
  showDuration,
  text,
  url,
} from './kinds.ts';

const about = 'for the test';
const KEY = Buffer.alloc(32, 7);

function cases<T>(name: string, setting: Setting<T>, good: [string, T][], bad: string[]): void {
  describe(name, () => {
    it.each(good)('reads %j', (given, expected) => {
      expect(setting.read(given)).toEqual(expected);
    });
    it.each(bad)('refuses %j', (given) => {
      expect(setting.read(given)).toBeInstanceOf(Invalid);
    });
    it('reads the text that it shows', () => {
      if (setting.secrecy !== 'open') return;
      for (const [, value] of good) expect(setting.read(setting.show(value))).toEqual(value);
    });
  });
}

cases(
  'integer',
  integer({ default: 1, min: -5, max: 65_535, about }),
  [
    ['0', 0],
    ['8787', 8787],
    ['-5', -5],
    ['007', 7],
  ],
  ['', ' ', '1.5', '1e3', '0x10', '65536', '-6', 'abc', '1 2', 'NaN', 'Infinity', '9007199254740993'],
);

cases(
  'number',
  number({ default: 1, min: 0, max: 1, about }),
  [
    ['0', 0],
    ['0.4', 0.4],
    ['1', 1],
  ],
  ['', '.5', '1.01', '-0.1', '1e-1', 'NaN', '0,5'],
);

cases(
  'duration',
  duration({ default: 1, min: 1, max: 86_400_000, about }),
  [
    ['500', 500],
    ['500ms', 500],
    ['2s', 2000],
    ['1.1s', 1100],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['90 s', 90_000],
  ],
  ['', '0', '-1s', '2d', '0.5ms', '1.0005s', '5 minutes', 's', '1h30m', '5M', '1e3'],
);

cases(
  'bytes',
  bytes({ default: 1, min: 0, max: 2 * 1024 ** 3, about }),
  [
    ['0', 0],
    ['65536', 65_536],
    ['256KiB', 262_144],
    ['256 KiB', 262_144],
    ['4MiB', 4_194_304],
    ['1.5KiB', 1536],
    ['1GiB', 1_073_741_824],
    ['1kB', 1000],
    ['2MB', 2_000_000],
    ['10B', 10],
  ],
  ['', '-1', '3GiB', '256kib', '256K', '0.3B', 'KiB'],
);

cases(
  'boolean',
  boolean({ default: false, about }),
  [
    ['true', true],
    ['1', true],
    ['YES', true],
    ['on', true],
    ['false', false],
    ['0', false],
    ['No', false],
    ['off', false],
  ],
  ['', '2', 'y', 'tru', 'enabled'],
);

cases(
  'choice',
  choice({ of: ['all', 'api'], default: 'all', about }),
  [
    ['all', 'all'],
    ['api', 'api'],
  ],
  ['', 'ALL', 'apis', 'toString'],
);

cases(
  'text',
  text({ default: null, minLength: 3, maxLength: 5, about }),
  [
    ['abc', 'abc'],
    ['a c d', 'a c d'],
  ],
  ['', 'ab', 'abcdef'],
);

cases(
  'url',
  url({ default: null, schemes: ['http', 'https'], about }),
  [
    ['https://hooks.example.com', 'https://hooks.example.com'],
    ['http://127.0.0.1:8787/', 'http://127.0.0.1:8787'],
    ['https://example.com/base//', 'https://example.com/base'],
  ],
  ['', 'example.com', 'ftp://example.com', 'https://', 'https://a b', 'http://[::1', 'HTTPS//x'],
);

cases(
  'url of PostgreSQL',
  url({ default: null, schemes: ['postgres', 'postgresql'], secret: true, about }),
  [
    ['postgres://u:p@h/db', 'postgres://u:p@h/db'],
    ['postgresql:///db?host=/var/run/postgresql', 'postgresql:///db?host=/var/run/postgresql'],
    ['postgres://u:p@/db?host=/tmp', 'postgres://u:p@/db?host=/tmp'],
  ],
  ['', 'h/db', 'mysql://h/db', 'postgres://', 'host=localhost dbname=x'],
);

cases(
  'cidrs',
  cidrs({ default: [], about }),
  [
    ['none', []],
    ['10.0.0.0/8', ['10.0.0.0/8']],
    ['10.1.2.3', ['10.1.2.3/32']],
    ['::1', ['::1/128']],
    ['127.0.0.0/8, fd00::/08', ['127.0.0.0/8', 'fd00::/8']],
  ],
  [
    '',
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    'fe80::1%eth0',
    'a,b',
    '10.0.0.1,',
  ],
);

cases(
  'integers',
  integers({ default: [], min: 1, max: 65_535, about }),
  [
    ['none', []],
    ['443', [443]],
    ['443, 8443', [443, 8443]],
  ],
  ['', '0', '443,', '65536', '443;8443'],
);

cases(
  'key32',
  key32({ default: null, about }),
  [
    [KEY.toString('base64'), KEY],
    [KEY.toString('base64').replace('=', ''), KEY],
    [Buffer.alloc(32, 0xff).toString('base64url'), Buffer.alloc(32, 0xff)],
  ],
  [
    '',
    'x',
    KEY.toString('hex'),
    Buffer.alloc(31).toString('base64'),
    `!${KEY.toString('base64')}`,
    `${KEY.toString('base64')}AA`,
  ],
);

cases(
  'key32List',
  key32List({ default: [], about }),
  [
    ['none', []],
    [`${KEY.toString('base64')},${KEY.toString('base64url')}`, [KEY, KEY]],
  ],
  ['', 'x', `${KEY.toString('base64')},`],
);

describe('the allowed values', () => {
  it('are described with their range', () => {
    expect(integer({ default: 1, min: 0, max: 9, about }).allowed).toBe('a whole number from 0 to 9');
    expect(number({ default: 1, min: 0.5, about }).allowed).toBe('a number of at least 0.5');
    expect(number({ default: 1, max: 2, about }).allowed).toBe('a number of at most 2');
    expect(number({ default: 1, about }).allowed).toBe('a number');
    expect(duration({ default: 1, min: 10, max: 60_000, about }).allowed).toContain('from 10ms to 1m');
    expect(bytes({ default: 1, min: 1024, about }).allowed).toContain('of at least 1KiB');
    expect(choice({ of: ['a', 'b'], default: 'a', about }).allowed).toBe('one of a, b');
    expect(text({ default: '', minLength: 16, about }).allowed).toBe('a text of at least 16 characters');
  });
});

describe('quantities', () => {
  it('are shown in the largest unit in which they are whole numbers', () => {
    expect(
      [0, 1, 999, 1000, 1500, 90_000, 300_000, 3_600_000, 86_400_000, 432_000_000].map(showDuration),
    ).toEqual(['0', '1ms', '999ms', '1s', '1500ms', '90s', '5m', '1h', '1d', '5d']);
    expect([0, 1000, 1024, 1536, 1_048_576, 1_073_741_824].map(showBytes)).toEqual([
      '0',
      '1000',
      '1KiB',
      '1536',
      '1MiB',
      '1GiB',
    ]);
  });
});
