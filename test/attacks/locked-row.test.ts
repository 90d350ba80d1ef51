/** A row that another transaction keeps locked stops only the requests that need it. */
import { expect, test } from 'vitest';
import { lockRows } from '../support/lock-rows.ts';
import { newTenant, publish, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

const HOLD_KEY = `insert into posthorn.idempotency_keys (tenant, key, event_id, fingerprint, expires_at)
  values ($1, 'locked', '01900000-0000-7000-8000-000000000000', '', now() + interval '1 hour')`;
const CREATE_TENANT = 'insert into posthorn.tenants (id) values ($1)';

test.each([
  ['an idempotency key', HOLD_KEY, 'locked'],
  ['a tenant that is being created', CREATE_TENANT, undefined],
])('%s, locked elsewhere, delays only the request that needs it', async (_, sql, key) => {
  const [blockedTenant, tenant] = [newTenant(), newTenant()];
  const known = sql === CREATE_TENANT ? [tenant] : [blockedTenant, tenant];
  for (const each of known) await publish(posthorn, { tenant: each, type: 'a.b', data: 0 });
  const unlock = await lockRows(posthorn.database, sql, [blockedTenant]);

  const post = (of: string, idempotency_key?: string) =>
    posthorn.api('POST', '/v1/events', { tenant: of, type: 'a.b', data: 11, idempotency_key });
  let isAnswered = false;
  const events = Array.from({ length: 24 }, (_each, n) =>
    n === 11
      ? { tenant: blockedTenant, type: 'a.b', data: n, idempotency_key: key }
      : { tenant, type: 'a.b', data: n, idempotency_key: `key-${n}` },
  );
  const answers = events.map((event) => posthorn.api('POST', '/v1/events', event));
  const blocked = answers[11]!.finally(() => {
    isAnswered = true;
  });
  const others = await Promise.all(answers.filter((_each, n) => n !== 11));
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 202));

  // Posthorn knows by now which row is locked: new requests are not delayed, even beside another one that needs it.
  const again = post(blockedTenant, key);
  const startedAt = performance.now();
  const newcomers = await Promise.all(Array.from({ length: 20 }, () => post(tenant)));
  expect(newcomers.map(({ status }) => status)).toEqual(newcomers.map(() => 202));
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(isAnswered).toBe(false);

  await unlock();
  expect([(await blocked).status, (await again).status]).toEqual([202, 202]);
});
