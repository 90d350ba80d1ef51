/** Invented cookies cost no query, and ended sessions stay ended. A pool that counts stands for the database. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Clock } from '../../domain/clock.ts';
import { LocalBuckets } from '../../domain/local-buckets.ts';
import { ApiKeyFormat } from '../../manage/api-keys.ts';
import type { Pool } from '../../postgres/database.ts';
import { Authenticator } from '../http/authenticator.ts';
import { KeyRates } from '../http/key-rates.ts';
import { UncheckedKeys } from '../http/unchecked-keys.ts';
import { CSRF_HEADER, SESSION_COOKIE, SESSION_PREFIX, Sessions } from './sessions.ts';

function setUp() {
  let queries = 0;
  const database = { isStored: true, whileReading: () => {} };
  const pool = {
    async query(query: { name?: string }) {
      if (query.name !== 'find_session') return { rows: [] };
      queries += 1;
      const rows = database.isStored ? [{ subject: 'ann', name: 'Ann', expires_at: new Date(1e12) }] : [];
      database.whileReading();
      return { rows };
    },
  } as unknown as Pool;
  const clock = { monotonic: () => 0, now: () => 0 } as unknown as Clock;
  const keyFormat = new ApiKeyFormat(randomBytes(32));
  const tokenFormat = keyFormat.withPrefix(SESSION_PREFIX);
  const sessions = new Sessions({ pool, clock, tokenFormat, lifetimeMs: 1000, isSecure: () => false });
  const isSignedIn = async (token: string) =>
    (await sessions.findCurrent(`${SESSION_COOKIE}=${token}`)) !== null;
  const limitedTo = (burst: number) =>
    new Authenticator(pool, clock, 'the admin key', {
      rates: new KeyRates(0.001, burst, new LocalBuckets(clock)),
      guesses: { keyFormat, uncheckedKeys: new UncheckedKeys(pool, clock) },
      isTrustedProxy: () => false,
      operatorTenant: 'posthorn',
      sessions,
    });
  return { limitedTo, sessions, database, isSignedIn, keyFormat, tokenFormat, countQueries: () => queries };
}

it('an invented session cookie is refused without a query', async () => {
  const { isSignedIn, keyFormat, countQueries } = setUp();
  const random = randomBytes(32).toString('base64url');
  for (const token of ['x', random, `${SESSION_PREFIX}${random}AAAAAAAA`, keyFormat.generate()])
    expect(await isSignedIn(token)).toBe(false);
  expect(countQueries()).toBe(0);
});

it('many ended sessions do not evict a valid one from the cache', async () => {
  const { isSignedIn, tokenFormat, database, countQueries } = setUp();
  const token = tokenFormat.generate();
  expect(await isSignedIn(token)).toBe(true);
  database.isStored = false;
  for (let count = 0; count < 10_001; count += 1) await isSignedIn(tokenFormat.generate());
  const before = countQueries();
  expect(await isSignedIn(token)).toBe(true);
  expect(countQueries()).toBe(before);
});

it('a session that ends while it is read is not cached', async () => {
  const { sessions, isSignedIn, tokenFormat, database } = setUp();
  const token = tokenFormat.generate();
  database.whileReading = () => {
    database.isStored = false;
    sessions.clear();
  };
  await isSignedIn(token);
  expect(await isSignedIn(token)).toBe(false);
});

it('the rate limit of keys applies to a person, over all sessions', async () => {
  const { limitedTo, sessions, tokenFormat } = setUp();
  const authenticator = limitedTo(2);
  const call = async () => {
    const cookie = `${SESSION_COOKIE}=${tokenFormat.generate()}`;
    const { csrfToken } = (await sessions.findCurrent(cookie))!;
    return authenticator.authenticate({ headers: { cookie, [CSRF_HEADER]: csrfToken }, socket: {} });
  };
  for (let count = 0; count < 2; count += 1) expect(await call()).toMatchObject({ user: 'ann' });
  await expect(call()).rejects.toMatchObject({ code: 'rate_limited' });
});
