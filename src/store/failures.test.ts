import { expect, it } from 'vitest';
import { failureOf } from './failures.ts';

const server = (code: string, more: object = {}) =>
  Object.assign(new Error(code), { severity: 'ERROR', code, ...more });

it.each([
  ['22021', {}, 'bad_row'],
  ['22P05', {}, 'bad_row'],
  ['23505', { constraint: 'events_pkey' }, 'bad_row'],
  ['23514', { constraint: 'queue_check' }, 'bad_row'],
  ['23514', {}, 'no_partition'],
  ['40P01', {}, 'conflict'],
  ['40001', {}, 'conflict'],
  ['55P03', {}, 'conflict'],
  ['57P01', {}, 'unknown'],
  ['57014', {}, 'unknown'],
  ['08006', {}, 'unknown'],
  ['53300', {}, 'unavailable'],
  ['53100', {}, 'unavailable'],
  ['25006', {}, 'unavailable'],
  ['42P01', {}, 'other'],
])('SQLSTATE %s %j is %s', (code, more, expected) => {
  expect(failureOf(server(code, more))).toBe(expected);
});

it.each([
  ['a cut connection', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
  ['a pipe that looks like a SQLSTATE', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })],
  ['an error without a code', new Error('Connection terminated unexpectedly')],
  ['no error at all', undefined],
  ['null', null],
])('%s: nobody knows whether it was committed', (_, error) => {
  expect(failureOf(error)).toBe('unknown');
});
