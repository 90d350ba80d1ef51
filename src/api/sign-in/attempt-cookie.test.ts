import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Clock } from '../../domain/clock.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import { attemptCookie, readAttempt, type StoredAttempt } from './attempt-cookie.ts';

it('a started sign-in expires after ten minutes, also for somebody who copied its cookie', () => {
  let now = 0;
  const clock = { now: () => now } as Clock;
  const options = { clock, secretBox: createSecretBox(randomBytes(32)), isSecure: () => true };
  const attempt = { state: 's', returnTo: '/console' } as unknown as StoredAttempt;
  const [cookie] = attemptCookie(options, attempt).split(';');
  now = 599_999;
  expect(readAttempt(options, cookie)).toEqual(attempt);
  now = 600_000;
  expect(readAttempt(options, cookie)).toBeNull();
});
