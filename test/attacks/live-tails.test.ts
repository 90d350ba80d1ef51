/** A tenant opens as many live tails as it can. */
import { expect, test } from 'vitest';
import { openTail } from '../support/live-tail.ts';
import { expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

test('one key gets ten live tails, then 429; another tenant can still open one', async () => {
  const newKey = async (): Promise<string> =>
    (await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() }), 201)).body
      .key;
  const [greedy, other] = [await newKey(), await newKey()];
  for (let n = 0; n < 10; n += 1) await openTail(posthorn, '', { key: greedy });
  for (let n = 0; n < 5; n += 1)
    await expectStatus(posthorn.api('GET', '/v1/stream', undefined, { key: greedy }), 429);
  const tail = await openTail(posthorn, '', { key: other });
  expect(tail.shown[0]!.event).toBe('ready');
});
