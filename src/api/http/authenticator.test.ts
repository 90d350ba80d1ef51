/** Guessed keys cost no query each. A pool that counts stands for the database. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../domain/clock.ts';
import { LocalBuckets } from '../../domain/local-buckets.ts';
import { ApiKeyFormat, hashApiKey } from '../../manage/api-keys.ts';
import type { Pool } from '../../postgres/database.ts';
import { Authenticator } from './authenticator.ts';
import { KeyRates } from './key-rates.ts';
import { UncheckedKeys } from './unchecked-keys.ts';

const guess = (): string => `phk_${randomBytes(32).toString('base64url')}`;

function setUp(oldKeys: readonly string[] = []) {
  const stored = new Map<string, object>();
  const add = (key: string): void => {
    const record = {
      id: key,
      scope: 'admin',
      tenant: null,
      scopes: null,
      expires_at: null,
      allowed_ips: null,
      prefix: 'phk_',
      rate_per_second: null,
      rate_burst: null,
    };
    stored.set(hashApiKey(key).toString('hex'), record);
  };
  const unchecked = [...oldKeys];
  for (const key of oldKeys) add(key);
  const queries: Record<string, number> = {};
  const pool = {
    async query(query: { name?: string; values: Buffer[] }) {
      const name = query.name ?? 'other';
      queries[name] = (queries[name] ?? 0) + 1;
      if (name === 'list_unchecked_keys')
        return { rows: unchecked.map((key) => ({ hash: hashApiKey(key), created_at: new Date(0) })) };
      const found = name === 'find_key' ? stored.get(query.values[0]!.toString('hex')) : undefined;
      return { rows: found === undefined ? [] : [found] };
    },
  } as unknown as Pool;
  let now = 0;
  const clock = { monotonic: () => now, now: () => now } as unknown as Clock;
  const keyFormat = new ApiKeyFormat(randomBytes(32));
  const uncheckedKeys = new UncheckedKeys(pool, clock);
  const rates = new KeyRates(0, 1, new LocalBuckets(clock));
  const authenticator = new Authenticator(pool, clock, 'the admin key', {
    rates,
    guesses: { keyFormat, uncheckedKeys },
    isTrustedProxy: () => false,
    operatorTenant: 'posthorn',
    sessions: null,
  });
  const isAccepted = async (key: string): Promise<boolean> => {
    try {
      await authenticator.authenticate({ headers: { authorization: `Bearer ${key}` }, socket: {} });
      return true;
    } catch {
      return false;
    }
  };
  return {
    isAccepted,
    queries,
    keyFormat,
    add,
    unchecked,
    wait: (ms: number) => {
      now += ms;
    },
  };
}

describe('guessed keys', () => {
  it('are refused without a query for each, whatever they look like', async () => {
    const { isAccepted, queries, wait } = setUp();
    for (let second = 0; second < 10; second += 1) {
      for (let n = 0; n < 470; n += 1) {
        expect(await isAccepted(guess())).toBe(false);
        expect(await isAccepted(`phk_${randomBytes(39).toString('base64url').slice(0, 51)}`)).toBe(false);
      }
      wait(1000);
    }
    expect(queries).toEqual({ list_unchecked_keys: 10 });
  });

  it('that arrive together share one query', async () => {
    const { isAccepted, queries } = setUp();
    const answers = await Promise.all(Array.from({ length: 1000 }, () => isAccepted(guess())));
    expect(answers).not.toContain(true);
    expect(queries).toEqual({ list_unchecked_keys: 1 });
  });
});

it('keys with a checksum are looked up at once, and those of earlier versions still work', async () => {
  const old = guess();
  const { isAccepted, queries, keyFormat, add } = setUp([old]);
  const key = keyFormat.generate();
  add(key);
  expect(await isAccepted(key)).toBe(true);
  expect(queries).toMatchObject({ find_key: 1 });
  expect(queries).not.toHaveProperty('list_unchecked_keys');
  expect(await isAccepted(old)).toBe(true);
  expect(await isAccepted(keyFormat.generate())).toBe(false);
});

it('a key that a server of an earlier version has just created works within a quarter of a second', async () => {
  const { isAccepted, unchecked, add, wait } = setUp();
  expect(await isAccepted(guess())).toBe(false);
  const created = guess();
  add(created);
  unchecked.push(created);
  wait(250);
  expect(await isAccepted(created)).toBe(true);
});
