/** SEC-3: short-lived access for the people of one tenant. */
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({
  inProcess: true,
  env: { POSTHORN_PORTAL_ORIGINS: 'https://app.example.com,http://localhost:3000' },
});
const URL_OF_NOBODY = 'https://example.com/';

interface Created {
  readonly id: string;
  readonly url: string;
  readonly token: string;
  readonly expires_at: string;
}

async function createSession(settings: object): Promise<Created> {
  return (await expectStatus(posthorn.api('POST', '/v1/portal-sessions', settings), 201)).body;
}
const listEndpoints = (key: string, query = '') =>
  posthorn.api('GET', `/v1/endpoints${query}`, undefined, { key });

test('SEC-3: a portal session sees one tenant, and does what its capabilities name', async () => {
  const [tenant, other] = [newTenant(), newTenant()];
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant });
  const theirs = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: other });
  const capabilities = ['endpoints:read', 'deliveries:read'];
  const before = Date.now();
  const session = await createSession({ tenant, capabilities, ttl_seconds: 900 });
  expect(Math.abs(Date.parse(session.expires_at) - before - 900_000)).toBeLessThan(60_000);
  expect(session.url).toBe(`${posthorn.url}/console#portal=${session.token}`);

  const { body } = await expectStatus(listEndpoints(session.token), 200);
  expect(body.data).toMatchObject([{ id }]);
  await expectStatus(listEndpoints(session.token, `?tenant=${other}`), 403);
  const call = (method: string, path: string, content?: object) =>
    posthorn.api(method, path, content, { key: session.token });
  await expectStatus(call('GET', `/v1/endpoints/${theirs.id}`), 404);
  await expectStatus(call('PATCH', `/v1/endpoints/${id}`, { description: 'x' }), 403);
  await expectStatus(call('GET', '/v1/events'), 403);
  for (const path of ['/v1/keys', '/v1/portal-sessions', '/v1/audit', '/v1/tenants'])
    await expectStatus(call('GET', path), 403);
  await expectStatus(call('POST', '/v1/portal-sessions', { tenant }), 403);
  expect((await call('GET', '/v1/keys/current')).body).toMatchObject({
    scope: 'tenant',
    tenant,
    scopes: capabilities,
  });
});

test('SEC-3: without capabilities, a session may neither publish nor see secrets', async () => {
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant });
  const { token } = await createSession({ tenant });
  const call = (method: string, path: string, content?: object) =>
    posthorn.api(method, path, content, { key: token });
  await expectStatus(call('PATCH', `/v1/endpoints/${id}`, { description: 'x' }), 200);
  await expectStatus(call('GET', '/v1/events'), 200);
  await expectStatus(call('POST', '/v1/events', { type: 'a.b', data: 1 }), 403);
  await expectStatus(call('GET', `/v1/endpoints/${id}/secret`), 403);
});

test('SEC-3: a session expires, and an admin can end it before', async () => {
  const tenant = newTenant();
  const short = await createSession({ tenant, ttl_seconds: 1 });
  await eventually('the session has expired', async () => (await listEndpoints(short.token)).status === 401);
  const { id, token } = await createSession({ tenant, description: 'ada@acme.example' });
  await expectStatus(listEndpoints(token), 200);
  const listed = await expectStatus(posthorn.api('GET', `/v1/portal-sessions?tenant=${tenant}`), 200);
  expect(listed.body.data).toMatchObject([{ id, tenant, description: 'ada@acme.example' }]);
  expect(listed.text).not.toContain(token);
  await expectStatus(posthorn.api('DELETE', `/v1/portal-sessions/${id}`), 204);
  await expectStatus(listEndpoints(token), 401);
  for (const ended of [id, short.id])
    await expectStatus(posthorn.api('DELETE', `/v1/portal-sessions/${ended}`), 404);
  const { body: audit } = await posthorn.api('GET', `/v1/audit?tenant=${tenant}`);
  expect(audit.data.map(({ action }: { action: string }) => action)).toEqual([
    'portal_session.delete',
    'portal_session.create',
    'portal_session.create',
  ]);
  expect(JSON.stringify(audit)).not.toContain(token);
});

test('portal sessions are no keys: a key request neither lists, shows, changes nor revokes them', async () => {
  const tenant = newTenant();
  const { id, token } = await createSession({ tenant });
  expect((await posthorn.api('GET', `/v1/keys?tenant=${tenant}`)).body.data).toEqual([]);
  await expectStatus(posthorn.api('GET', `/v1/keys/${id}`), 404);
  // Otherwise a session could become a key that lasts forever and that no list shows.
  await expectStatus(posthorn.api('PATCH', `/v1/keys/${id}`, { expires_at: null }), 404);
  await expectStatus(posthorn.api('DELETE', `/v1/keys/${id}`), 404);
  const { body: key } = await expectStatus(
    posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }),
    201,
  );
  await expectStatus(posthorn.api('DELETE', `/v1/portal-sessions/${key.id}`), 404);
  await expectStatus(listEndpoints(token), 200);
});

test('deleting a tenant ends its portal sessions, which do not prevent it', async () => {
  const tenant = newTenant();
  const { token } = await createSession({ tenant });
  await expectStatus(listEndpoints(token), 200);
  await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}`), 204);
  await eventually('the session has ended', async () => (await listEndpoints(token)).status === 401);
});

test.each([
  ['tenant', {}],
  ['tenant', { tenant: 'a b' }],
  ['tenant', { tenant: 'posthorn' }],
  ['capabilities', { tenant: 'acme', capabilities: [] }],
  ['capabilities[0]', { tenant: 'acme', capabilities: ['catalogue:write'] }],
  ['ttl_seconds', { tenant: 'acme', ttl_seconds: 0 }],
  ['ttl_seconds', { tenant: 'acme', ttl_seconds: 86_401 }],
  ['appearance.accent', { tenant: 'acme', appearance: { accent: 'red' } }],
])('an invalid portal session is refused: %s', async (path, settings) => {
  const { body } = await expectStatus(posthorn.api('POST', '/v1/portal-sessions', settings), 422);
  expect(body.errors).toMatchObject([{ path }]);
});

test('CON-6: only pages of the configured origins may show the console in a frame', async () => {
  const { headers } = await fetch(`${posthorn.url}/console`);
  expect(headers.get('content-security-policy')).toContain(
    'frame-ancestors https://app.example.com http://localhost:3000',
  );
});
