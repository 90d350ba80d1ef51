/** Large bodies of settings, whose checks would block the process: refused by their size or by the number of their entries. */
import { expect, it } from 'vitest';
import { expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const URL_OF_NOBODY = 'http://127.0.0.1:9/';
const KIB = 1024;
const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1]));

it.each([
  ['POST', '/v1/keys', 256],
  ['PUT', '/v1/tenants/acme', 256],
  ['POST', '/v1/notifiers', 256],
  ['POST', '/v1/dead-letters/replay', 256],
  ['POST', '/v1/endpoints', 512],
  ['PUT', '/v1/event-types/a.b', 1024],
])('%s %s takes at most %i KiB', async (method, path, kib) => {
  const { body } = await expectStatus(
    posthorn.api(method, path, { description: 'x'.repeat(kib * KIB) }),
    413,
  );
  expect(body.code).toBe('too_large');
});

it('tens of thousands of entries are counted, not checked one by one', async () => {
  const tenant = newTenant();
  for (const [method, path, field] of [
    ['POST', '/v1/endpoints', 'metadata'],
    ['POST', '/v1/endpoints', 'filter'],
    ['PUT', `/v1/tenants/${tenant}`, 'metadata'],
  ] as const) {
    const settings = method === 'POST' ? { url: URL_OF_NOBODY, tenant } : {};
    const answer = posthorn.api(method, path, { ...settings, [field]: entries(20_000) });
    const { body } = await expectStatus(answer, 422);
    expect(body.errors).toEqual([{ path: field, message: 'must have at most 4000 entries, has 20000' }]);
  }
});

it('the largest endpoint that is allowed fits', async () => {
  const settings = {
    url: URL_OF_NOBODY,
    tenant: newTenant(),
    headers: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`x-${n}`, 'v'.repeat(4096)])),
    events: Array.from({ length: 500 }, (_, n) => `${'abcdefg.'.repeat(12)}p${n}`),
    metadata: { text: 'x'.repeat(16_000) },
  };
  const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 201);
  expect(body.events).toHaveLength(500);
});
