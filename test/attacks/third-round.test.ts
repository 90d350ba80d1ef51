/** Attacks of a third round, on a real server: each of them once blocked a process, failed with a 500 or showed too much. */
import { expect, it } from 'vitest';
import { publicId } from '../../src/domain/ids.ts';
import { createEndpoint, expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'true' } });
const { api } = posthorn;
const URL_OF_NOBODY = 'http://127.0.0.1:9/';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const many = (count: number, name: string, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}${n}`, value]));

it('an answer about tens of thousands of unknown fields names ten of them', async () => {
  for (const body of [
    many(20_000, 'unknown-field-', 1),
    { url: URL_OF_NOBODY, retry: many(20_000, 'x', 1) },
  ]) {
    const answer = await expectStatus(api('POST', '/v1/endpoints', body), 422);
    expect(answer.text.length).toBeLessThan(4_000);
    expect(answer.body.errors).toHaveLength(10);
  }
});

it('an endpoint cannot get, and a patch cannot name, thousands of headers', async () => {
  const headers = many(10_000, 'x-header-name-', 'v');
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
  for (const answer of [
    await api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, tenant: newTenant(), headers }),
    await api('PATCH', `/v1/endpoints/${id}`, { headers }),
  ]) {
    expect(answer.status).toBe(422);
    expect(answer.body.errors).toHaveLength(1);
    expect(answer.text.length).toBeLessThan(2_000);
  }
});

it.each(['proxy', 'webhook', 'posthorn', 'Webhook-Id', 'posthorn-test', 'host', 'x:y'])(
  'a signature cannot have the header name %s',
  async (header) => {
    const signature = { profile: 'hex', header };
    const { body } = await expectStatus(
      api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, tenant: newTenant(), signature }),
      422,
    );
    expect(JSON.stringify(body.errors)).toContain('signature');
  },
);

it.each(['/v1/deliveries?event_id=', '/v1/dead-letters?event_id='])(
  '%s with the last of all ids is an empty list, not an error',
  async (path) => {
    const { body } = await expectStatus(api('GET', `${path}${publicId('evt', LAST_ID)}`), 200);
    expect(body.data).toEqual([]);
  },
);

it.each([
  ['GET', '/v1/events/', 'evt', ''],
  ['GET', '/v1/deliveries/', 'dlv', ''],
  ['GET', '/v1/tasks/', 'task', ''],
  ['POST', '/v1/events/', 'evt', '/replay'],
  ['DELETE', '/v1/events/', 'evt', '/payload'],
] as const)('%s %s with the last of all ids is 404', async (method, path, prefix, rest) => {
  await expectStatus(api(method, `${path}${publicId(prefix, LAST_ID)}${rest}`), 404);
});

it('the token of a session is masked in answers that repeat the request', async () => {
  const token = `phs_${'s3cret'.repeat(8)}`;
  for (const answer of [
    await api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, tenant: newTenant(), [token]: 1 }),
    await api('GET', `/v1/${token}`),
    await api('GET', `/v1/endpoints/${token}`),
    await api('GET', `/v1/events?${token}=1`),
  ]) {
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.text).not.toContain(token);
  }
});

it('a request to an inbox is checked with the secrets of few endpoints, however many have its URL', async () => {
  const tenant = newTenant();
  const { body: inbox } = await expectStatus(api('POST', '/v1/inboxes', { tenant }), 201);
  await Promise.all(
    Array.from({ length: 60 }, () => createEndpoint(posthorn, { url: inbox.url, tenant, paused: true })),
  );
  const body = 'x'.repeat(200 * 1024);
  const startedAt = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      fetch(inbox.url, {
        method: 'POST',
        body,
        headers: { 'webhook-signature': 'v1,x', 'webhook-id': 'evt_x' },
      }),
    ),
  );
  const tookMs = performance.now() - startedAt;
  expect(answers.every(({ status }) => status < 500)).toBe(true);
  // With all secrets: 20 requests × 60 endpoints × some forms of a signature × 200 KiB.
  expect(tookMs).toBeLessThan(10_000);
});
