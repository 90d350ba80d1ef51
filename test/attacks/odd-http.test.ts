/** Almost valid HTTP: status lines that do not mean success, two hosts, endless names, credentials in an inbox. */
import { expect, it } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS } from '../../src/deliver/index.ts';
import { anEndpoint, attempt } from '../support/attempts.ts';
import { rawThenClose } from '../support/behaviours.ts';
import { createEndpoint, expectStatus, newReceiver, newTenant, usePosthorn } from '../support/posthorn.ts';
import { exchange } from '../support/raw-http.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'true' } });

it.each([
  'HTTP/1.1 000 OK',
  'HTTP/1.1 099 OK',
  'HTTP/2.0 200 OK',
  'HTTP/0.9 200 OK',
  'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/2.0 200 OK',
])('a receiver that answers %j has not accepted the event', async (line) => {
  const receiver = await newReceiver();
  receiver.answer(rawThenClose(`${line}\r\ncontent-length: 0\r\n\r\n`));
  const deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
  });
  const outcome = await attempt(deliverer, anEndpoint(receiver.url));
  expect(outcome.error?.class).toBe('response_invalid');
  expect(outcome.statusCode).toBeNull();
  await deliverer.close();
});

it.each(['1.1', '1.0'])('an HTTP/%s request with two Host headers is a 400', async (version) => {
  const { host } = new URL(posthorn.url);
  const head = `GET /healthz HTTP/${version}\r\nconnection: close\r\nhost: ${host}\r\n`;
  const { answers: one } = await exchange(posthorn.url, `${head}\r\n`);
  expect(one[0]!.status).toBe(200);
  const { answers: two } = await exchange(posthorn.url, `${head}HOST: other.test\r\n\r\n`);
  expect(two[0]!.status).toBe(400);
  expect(two[0]!.body).toContain('more than once');
});

it('the name of a header of an endpoint has at most 128 characters', async () => {
  const endpoint = { url: 'https://example.com/', tenant: newTenant() };
  const named = (length: number) => ({ headers: { [`x-${'a'.repeat(length - 2)}`]: 'v' } });
  const { id } = await createEndpoint(posthorn, { ...endpoint, ...named(128) });
  for (const length of [129, 100_000]) {
    const refused = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { ...endpoint, ...named(length) }),
      422,
    );
    expect(refused.body.errors[0].path).toMatch(/^headers\.x-a+…$/);
    expect(refused.text.length).toBeLessThan(2_000);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, named(length)), 422);
  }
});

it('an inbox redacts credentials like attempts do', async () => {
  const { body: inbox } = await expectStatus(
    posthorn.api('POST', '/v1/inboxes', { tenant: newTenant() }),
    201,
  );
  const secrets = ['authorization', 'cookie', 'x-api-key', 'x-acme-token', 'x-shared-secret', 'x-session-id'];
  const headers = Object.fromEntries(secrets.map((name) => [name, 'hidden']));
  const path = new URL(inbox.url).pathname;
  await posthorn.api('POST', path, {}, { key: null, headers: { ...headers, 'x-env': 'shown' } });
  const { text } = await expectStatus(posthorn.api('GET', `/v1/inboxes/${inbox.token}/requests`), 200);
  expect(text).not.toContain('hidden');
  expect(text.match(/\[redacted\]/g)).toHaveLength(secrets.length);
  expect(text).toContain('shown');
});
