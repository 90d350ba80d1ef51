import { expect, it } from 'vitest';
import { failureOf, isOutage } from './failures.ts';

const server = (code: string, more: object = {}) =>
  Object.assign(new Error(code), { severity: 'ERROR', code, ...more });

it.each([
  ['22021', {}, 'invalid_row'],
  ['22P05', {}, 'invalid_row'],
  ['23505', { constraint: 'events_pkey' }, 'invalid_row'],
  ['23514', { constraint: 'queue_check' }, 'invalid_row'],
  ['23514', {}, 'missing_partition'],
  ['40P01', {}, 'conflict'],
  ['40001', {}, 'conflict'],
  ['55P03', {}, 'conflict'],
  ['57P01', {}, 'outcome_unknown'],
  ['57014', {}, 'timeout'],
  ['08006', {}, 'outcome_unknown'],
  ['53300', {}, 'unavailable'],
  ['53100', {}, 'unavailable'],
  ['25006', {}, 'unavailable'],
  ['42P01', {}, 'other'],
])('SQLSTATE %s %j is %s', (code, more, expected) => {
  expect(failureOf(server(code, more))).toBe(expected);
});

it.each([
  ['a cut connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
  [
    'a broken pipe, whose code looks like a SQLSTATE',
    Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }),
  ],
  ['an error without a code', new Error('Connection terminated unexpectedly')],
  ['no error at all', undefined],
  ['null', null],
])('%s: the outcome is unknown', (_, error) => {
  expect(failureOf(error)).toBe('outcome_unknown');
});

const socket = (syscall: string, code: string) =>
  Object.assign(new Error(`${syscall} ${code}`), { syscall, code });

it.each([
  ['nothing listens', socket('connect', 'ECONNREFUSED')],
  ['no socket', socket('connect', 'ENOENT')],
  ['no such host', socket('getaddrinfo', 'ENOTFOUND')],
  ['connection reset', socket('read', 'ECONNRESET')],
  ['connection terminated', new Error('Connection terminated unexpectedly')],
  ['no free connection', new Error('timeout exceeded when trying to connect')],
  ['stopping', server('57P01')],
  ['statement timeout', server('57014')],
  ['lock timeout', server('55P03')],
  ['disk full', server('53100')],
])('the database does not answer: %s', (_, error) => {
  expect(isOutage(error)).toBe(true);
});

it.each([
  ['an error in a statement', server('42P01')],
  ['a bad value', server('22021')],
  ['a file that is not there', socket('open', 'ENOENT')],
  ['a bug in our own code', new TypeError('undefined is not a function')],
  ['nothing', null],
])('not an outage: %s', (_, error) => {
  expect(isOutage(error)).toBe(false);
});
