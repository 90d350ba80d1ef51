/** Callers can send back what they read: GET, then PATCH with the same object, is 200 and changes nothing. */
import { describe, expect, test } from 'vitest';
import { parsePublicId } from '../../src/domain/ids.ts';
import { certificates } from '../support/certificates.ts';
import {
  createEndpoint,
  expectStatus,
  newTenant,
  type TestEndpoint,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'true' } });
const { clientOne, authority } = certificates;
const URL_OF_NOBODY = 'https://example.com/hooks';
const oauth = {
  type: 'oauth2',
  token_url: 'https://example.com/token',
  client_id: 'me',
  client_secret: 'hidden',
};

const create = (settings: object): Promise<TestEndpoint> =>
  createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant(), ...settings });
const read = async ({ id }: TestEndpoint) =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body;
const patch = ({ id }: TestEndpoint, body: unknown) => posthorn.api('PATCH', `/v1/endpoints/${id}`, body);
const stored = async ({ id }: TestEndpoint) => {
  const shown = await posthorn.database.query<{ config: object; version: string; audited: string }>(
    `select e.config, e.version, (select count(*) from posthorn.audit_log a where a.object_id = $1) as audited
       from posthorn.endpoints e where e.id = $2`,
    [id, parsePublicId('ep', id)],
  );
  return shown[0];
};

describe('an endpoint as it was read changes nothing', () => {
  test.each<[string, object]>([
    ['without settings', {}],
    [
      'with everything set',
      {
        description: 'x',
        events: ['order.*'],
        channels: ['eu'],
        filter: { 'data.zebra': 1, 'data.a': { $gte: 2, $lt: 9 } },
        metadata: { zebra: { b: 1, a: 2 }, a: null },
        headers: { 'X-Env': 'test', Authorization: 'secret' },
        signature: { profile: 'hex', header: 'x-sig' },
        retry: { base: 1, attempts: 3 },
        breaker: null,
        ordering: 'fifo',
        max_in_flight: 5,
        rate_limit: { per_second: 0.5 },
        timeout_ms: 2000,
        enabled: false,
      },
    ],
    ['with a preset', { retry: { preset: 'fast' }, breaker: { consecutive: 3 }, paused: true }],
    ['with basic auth', { auth: { type: 'basic', username: 'me', password: 'hidden' } }],
    ['with OAuth', { auth: oauth }],
    ['with a client certificate', { tls: { ...clientOne, ca: authority } }],
  ])('%s', async (_what, settings) => {
    const endpoint = await create(settings);
    const shown = await read(endpoint);
    const before = await stored(endpoint);
    const { body } = await expectStatus(patch(endpoint, shown), 200);
    const { warnings: _warnings, health: _health, ...changed } = body;
    const { health: _before, ...unchanged } = shown;
    expect(changed).toEqual(unchanged);
    expect(await stored(endpoint)).toEqual(before);
    // The answer to a PATCH can be sent back too.
    await expectStatus(patch(endpoint, body), 200);
    expect(await stored(endpoint)).toEqual(before);
  });
});

test('only what differs is changed', async () => {
  const endpoint = await create({ auth: oauth, headers: { 'x-api-key': 'hidden' } });
  const { config: before } = (await stored(endpoint)) as { config: Record<string, unknown> };
  await expectStatus(patch(endpoint, { ...(await read(endpoint)), description: 'new' }), 200);
  const { config } = (await stored(endpoint)) as { config: Record<string, unknown> };
  expect(config).toEqual(before);
  expect((await read(endpoint)).description).toBe('new');
  const shown = await read(endpoint);
  const other = { ...shown, auth: { ...shown.auth, client_id: 'else' } };
  await expectStatus(patch(endpoint, other), 200);
  const after = (await stored(endpoint)) as { config: Record<string, unknown> };
  expect(after.config.auth).toMatchObject({ client_id: 'else' });
  expect(after.config.sealed_settings).toEqual(before.sealed_settings);
});

test('a read-only field with another value is refused', async () => {
  const endpoint = await create({});
  for (const [name, value] of Object.entries({
    id: 'ep_x',
    tenant: 'other',
    disabled_reason: 'manual',
    created_at: '2027-01-31T12:00:00Z',
  })) {
    const { body } = await expectStatus(patch(endpoint, { ...(await read(endpoint)), [name]: value }), 422);
    expect(body.errors).toMatchObject([{ path: name }]);
  }
});

describe('[redacted] is refused', () => {
  test('where there is no stored value', async () => {
    const endpoint = await create({});
    for (const [path, body] of [
      ['headers.x-api-key', { headers: { 'x-api-key': '[redacted]' } }],
      ['auth.password', { auth: { type: 'basic', username: 'me', password: '[redacted]' } }],
      ['tls.key', { tls: { cert: clientOne.cert, key: '[redacted]' } }],
    ] as const)
      expect((await expectStatus(patch(endpoint, body), 422)).body.errors).toMatchObject([{ path }]);
  });

  test('where the URL, the token_url or the type changes: the secret would go to another host', async () => {
    const endpoint = await create({ auth: oauth, headers: { 'x-api-key': 'hidden' } });
    const shown = await read(endpoint);
    const url = 'https://attacker.example/';
    const moved = await expectStatus(patch(endpoint, { ...shown, url }), 422);
    const paths = moved.body.errors.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(['headers.x-api-key', 'auth.client_secret']);
    for (const [path, auth] of [
      ['auth.client_secret', { ...shown.auth, token_url: url }],
      ['auth.token', { type: 'bearer', token: '[redacted]' }],
    ] as const)
      expect((await expectStatus(patch(endpoint, { auth }), 422)).body.errors).toMatchObject([{ path }]);
    expect(await read(endpoint)).toMatchObject({ url: shown.url, auth: shown.auth });
    const withCertificate = await create({ tls: clientOne });
    const { tls } = await read(withCertificate);
    const refused = await expectStatus(patch(withCertificate, { url, tls }), 422);
    expect(refused.body.errors).toMatchObject([{ path: 'tls.key' }]);
  });
});

describe('what was read can be written back:', () => {
  const readAt = async (path: string) => (await expectStatus(posthorn.api('GET', path), 200)).body;
  const countChanges = async () =>
    (await posthorn.database.query<{ n: number }>('select count(*)::int as n from posthorn.audit_log'))[0]!.n;

  test.each<[string, 'PUT' | 'PATCH', object, string, object]>([
    [
      'a tenant',
      'PUT',
      { name: 'Acme', metadata: { a: 1 }, ingest_rate_limit: { per_second: 5 }, max_endpoints: 7 },
      'id',
      { name: 'New' },
    ],
    [
      'an event type',
      'PUT',
      {
        description: 'x',
        schema: { type: 'object' },
        example: { a: 1 },
        deprecated: true,
        sunset_at: '2027-01-31T12:00:00.000Z',
      },
      'name',
      { description: 'new' },
    ],
    [
      'a version of an event type',
      'PUT',
      {
        description: 'x',
        schema: { type: 'object' },
        example: { a: 1 },
        sunset_at: '2027-01-31T12:00:00.000Z',
      },
      'version',
      { description: 'new' },
    ],
    ['an inbox', 'PATCH', { status: 503, delay_ms: 10 }, 'token', { status: 204 }],
  ])('%s', async (what, method, settings, name, change) => {
    const path = await {
      'a tenant': async () => `/v1/tenants/${newTenant()}`,
      'an event type': async () => '/v1/event-types/read.back',
      'a version of an event type': async () => '/v1/event-types/read.back.version/versions/v1',
      'an inbox': async () =>
        `/v1/inboxes/${(await expectStatus(posthorn.api('POST', '/v1/inboxes', settings), 201)).body.token}`,
    }[what]!();
    if (method === 'PUT') await expectStatus(posthorn.api('PUT', path, settings), 201);
    const shown = await readAt(path);
    const before = await countChanges();
    const { body } = await expectStatus(posthorn.api(method, path, shown), 200);
    // The answer to a version also says whether it breaks receivers.
    const { compatibility: _, ...written } = body;
    expect(written).toEqual(shown);
    expect(await readAt(path)).toEqual(shown);
    expect(await countChanges()).toBe(before);
    // A read-only field with another value is a mistake, and the rest can be changed.
    const refused = await posthorn.api(method, path, { ...shown, [name]: 'else' });
    expect(refused.body.errors, refused.text).toMatchObject([{ path: name }]);
    await expectStatus(posthorn.api(method, path, { ...shown, created_at: '2020-01-01T00:00:00Z' }), 422);
    expect(await readAt(path)).toEqual(shown);
    await expectStatus(posthorn.api(method, path, { ...shown, ...change }), 200);
    expect(await readAt(path)).not.toEqual(shown);
  });
});
