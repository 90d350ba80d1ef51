/** A tenant names a victim as the token endpoint of its OAuth client, to have Posthorn call it. */
import { expect, it } from 'vitest';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { RecordedRequest } from '../support/receiver.ts';

const posthorn = usePosthorn({
  inProcess: true,
  env: { POSTHORN_REQUIRE_CHALLENGE: 'true', POSTHORN_TOKEN_HOSTS: 'localhost,*.id.example' },
});

const oauth = (token_url: string) => ({ type: 'oauth2', token_url, client_id: 'a', client_secret: 'b' });
/** A receiver that agrees to every challenge. */
const consenting = ({ body }: RecordedRequest) => {
  const { type, data } = JSON.parse(body.toString());
  return type === 'posthorn.challenge' ? { body: data.challenge } : {};
};

it('with POSTHORN_REQUIRE_CHALLENGE a tenant cannot name a token endpoint that has not agreed', async () => {
  const victim = await newReceiver({ host: '127.0.0.2' });
  const receiver = await newReceiver();
  receiver.answer((request) =>
    request.path === '/token' ? { body: '{"access_token":"x"}' } : consenting(request),
  );
  const tenant = newTenant();
  const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201);
  const asTenant = { key: body.key as string };
  const create = (settings: object) =>
    posthorn.api('POST', '/v1/endpoints', { url: receiver.url, challenge: 'echo', ...settings }, asTenant);

  const refused = await expectStatus(create({ auth: oauth(`${victim.url}/token`) }), 422);
  expect(refused.body.errors).toMatchObject([{ path: 'auth.token_url' }]);
  const { body: endpoint } = await expectStatus(create({ auth: oauth(`${receiver.url}/token`) }), 201);
  const patch = (change: object) => posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, change, asTenant);
  await expectStatus(patch({ auth: oauth(`${victim.url}/token`) }), 422);
  for (const listed of ['http://localhost/token', 'http://eu.id.example/token'])
    expect((await patch({ auth: oauth(listed) })).text).not.toContain('has not agreed');
  for (const other of [
    'https://id.example/token',
    'https://eu.id.example.attacker.test/',
    'https://xid.example/',
  ])
    expect((await expectStatus(patch({ auth: oauth(other) }), 422)).text).toContain('has not agreed');
  // The new URL agrees, but the token endpoint is on the old host then.
  await expectStatus(patch({ auth: oauth(`${receiver.url}/token`) }), 200);
  const elsewhere = await newReceiver({ host: '127.0.0.3' });
  elsewhere.answer(consenting);
  await expectStatus(patch({ url: elsewhere.url }), 422);
  await expectStatus(patch({ description: 'still changeable' }), 200);
  expect(victim.requests).toHaveLength(0);
});

it('20 events cause few requests to a server that is not a token endpoint', async () => {
  const victim = await newReceiver();
  victim.answer({ status: 404 });
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    auth: oauth(victim.url),
    retry: { schedule: Array(12).fill(0) },
    breaker: null,
  });
  const events = await Promise.all(
    Array.from({ length: 20 }, (_, n) => publish(posthorn, { type: 'a.b', data: n, tenant })),
  );
  for (const { id } of events) await untilDeliveries(posthorn, id, 'dead');
  // 240 attempts.
  expect(victim.requests.length).toBeLessThanOrEqual(10);
});
