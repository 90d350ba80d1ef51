import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Clock } from '../../domain/clock.ts';
import { createSecretBox } from '../../postgres/secret-box.ts';
import { readAttempt, type StoredSignIn, UsedAttempts, writeAttemptCookie } from './attempt-cookie.ts';

it('a started sign-in expires after ten minutes, also for somebody who copied its cookie', () => {
  let now = 0;
  const clock = { now: () => now } as Clock;
  const options = { clock, secretBox: createSecretBox(randomBytes(32)), isSecure: () => true };
  const attempt = { state: 's', returnTo: '/console' } as unknown as StoredSignIn;
  const [cookie] = writeAttemptCookie(options, attempt).split(';');
  now = 599_999;
  expect(readAttempt(options, cookie)).toEqual(attempt);
  now = 600_000;
  expect(readAttempt(options, cookie)).toBeNull();
});

it('a started sign-in ends once, and is forgotten when its cookie has expired', () => {
  let now = 0;
  const used = new UsedAttempts({ now: () => now } as Clock);
  expect(used.use({ state: 'a' })).toBe(true);
  expect(used.use({ state: 'a' })).toBe(false);
  expect(used.use({ state: 'b' })).toBe(true);
  now = 599_999;
  expect(used.use({ state: 'a' })).toBe(false);
  now = 600_000;
  expect(used.use({ state: 'a' })).toBe(true);
});
