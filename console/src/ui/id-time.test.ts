import { expect, it } from 'vitest';
import { readIdTime } from './id-time.ts';

it('readIdTime returns the time at which the server made the id', () =>
  expect(readIdTime('evt_01mdnvvj4needrhpsz96e3m000').toISOString()).toBe('2027-01-31T12:34:56.789Z'));
