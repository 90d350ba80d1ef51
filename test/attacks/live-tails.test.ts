/** A tenant opens as many live tails as it can. */
import { expect, test } from 'vitest';
import { openTail } from '../support/live-tail.ts';
import { expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

const newKey = async (tenant = newTenant()): Promise<string> =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201)).body.key;

test('one key gets ten live tails, then 429; another tenant can still open one', async () => {
  const [greedy, other] = [await newKey(), await newKey()];
  for (let n = 0; n < 10; n += 1) await openTail(posthorn, '', { key: greedy });
  for (let n = 0; n < 5; n += 1)
    await expectStatus(posthorn.api('GET', '/v1/stream', undefined, { key: greedy }), 429);
  const tail = await openTail(posthorn, '', { key: other });
  expect(tail.shown[0]!.event).toBe('ready');
});

test('five keys of a tenant get twenty live tails together, then 429; another tenant can still open one', async () => {
  const tenant = newTenant();
  const keys = await Promise.all(Array.from({ length: 5 }, () => newKey(tenant)));
  for (let n = 0; n < 20; n += 1) await openTail(posthorn, '', { key: keys[n % 5]! });
  for (const key of keys) {
    const refused = await expectStatus(posthorn.api('GET', '/v1/stream', undefined, { key }), 429);
    expect(refused.body.detail).toContain('keys of this tenant have 20 live tails');
  }
  const tail = await openTail(posthorn, '', { key: await newKey() });
  expect(tail.shown[0]!.event).toBe('ready');
});
