import { expect, test } from 'vitest';
import { StoreError } from '../ports/store-error.ts';
import { withStoreErrors } from './store-error.ts';

const rejectWith = (error: unknown): Promise<unknown> =>
  withStoreErrors(Promise.reject(error)).catch((thrown: unknown) => thrown);

test('errors of the server and of the connection become StoreErrors with the original as their cause', async () => {
  const conflict = Object.assign(new Error('deadlock'), { severity: 'ERROR', code: '40P01' });
  expect(await rejectWith(conflict)).toMatchObject({ failure: 'conflict', cause: conflict });
  const cut = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  expect(await rejectWith(cut)).toMatchObject({ failure: 'outcome_unknown', cause: cut });
});

test('an error of our own code is rethrown unchanged', async () => {
  const bug = new TypeError('undefined is not a function');
  expect(await rejectWith(bug)).toBe(bug);
});

test('a StoreError is not wrapped again', async () => {
  const error = new StoreError('unavailable', 'away');
  expect(await rejectWith(error)).toBe(error);
});
