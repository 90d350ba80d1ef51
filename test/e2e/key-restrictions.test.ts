/** Keys that may do less: `scopes`, `expires_at` and `allowed_ips`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { accessScopes } from '../../src/domain/access-scopes.ts';
import { type ApiOperation, Contract } from '../support/contract.ts';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, MAIN, newTenant, usePosthorn } from '../support/posthorn.ts';
import { startReceiver } from '../support/receiver.ts';
import { addressIn, exampleIn, makeWorld, type World } from '../support/world.ts';

const PROXY = '127.0.0.2';
const posthorn = usePosthorn({
  inProcess: true,
  env: { POSTHORN_INBOX: 'true', POSTHORN_TRUSTED_PROXIES: '127.0.0.1' },
});

async function createKey(settings: object): Promise<{ id: string; key: string }> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body;
}
const listEndpoints = (key: string, headers: Record<string, string> = {}) =>
  posthorn.api('GET', '/v1/endpoints', undefined, { key, headers });

describe('scopes', () => {
  let contract: Contract;
  let world: World;
  beforeAll(async () => {
    contract = new Contract((await posthorn.api('GET', '/openapi.json')).body);
    const receiver = await startReceiver();
    receiver.answer({ status: 404 });
    world = await makeWorld(posthorn, receiver.url);
    await receiver.close();
  });

  /** What the document says that a key with `scopes` needs. Null: no scope suffices. */
  function neededBy({ name, operation }: ApiOperation): readonly string[] | null {
    const [, ...scopes] = operation.security[0]!.key;
    return scopes.length > 0 || name === 'getCurrentKey' ? scopes : null;
  }

  test('every route × every scope: a key may do what its scopes name, and the 403 says what is missing', async () => {
    const operations = contract.operations.filter(({ role, streams }) => role !== null && !streams);
    let allowed = 0;
    for (const scope of accessScopes) {
      const { key } = await createKey({ scope: 'admin', scopes: [scope] });
      const tryOperation = async (operation: ApiOperation): Promise<void> => {
        const needed = neededBy(operation);
        const answer = await posthorn.api(
          operation.method,
          addressIn(world, operation.path),
          // A test event with its own content needs one more scope.
          operation.name === 'sendTestEvent' ? {} : exampleIn(world, contract.exampleOf(operation)),
          { key },
        );
        const what = `${scope}: ${operation.name} is ${answer.status} ${answer.text}`;
        if (needed?.every((each) => each === scope)) {
          expect([401, 403], what).not.toContain(answer.status);
          allowed += 1;
          return;
        }
        expect(answer.body, what).toMatchObject({ status: 403, code: 'forbidden' });
        const missing = needed?.filter((each) => each !== scope) ?? ['a key without `scopes`'];
        for (const each of missing) expect(answer.body.detail, what).toContain(each);
      };
      await Promise.all(operations.map(tryOperation));
    }
    expect(operations.length).toBeGreaterThan(50);
    expect(allowed).toBeGreaterThan(40);
  });

  test('a key with all scopes of a route that needs two may use it', async () => {
    const path = addressIn(world, '/v1/deliveries/{id}/attempts/{number}/request');
    for (const [scopes, status] of [
      [['deliveries:read'], 403],
      [['events:read'], 403],
      [['deliveries:read', 'events:read'], 200],
    ] as const) {
      const { key } = await createKey({ scope: 'read', scopes });
      await expectStatus(posthorn.api('GET', path, undefined, { key }), status);
    }
  });

  test('only a key that may publish chooses the content of a test event, and every test event says that it is one', async () => {
    const receiver = await startReceiver();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant: world.tenant });
    const send = (key: string, content: object) =>
      posthorn.api('POST', `/v1/endpoints/${id}/test`, content, { key });
    const { key } = await createKey({ scope: 'admin', scopes: ['endpoints:write'] });
    for (const content of [{ type: 'order.paid' }, { data: { paid: true } }]) {
      const { body } = await expectStatus(send(key, content), 403);
      expect(body.detail).toContain('events:publish');
    }
    await expectStatus(send(key, {}), 202);
    const publisher = await createKey({ scope: 'admin', scopes: ['endpoints:write', 'events:publish'] });
    await expectStatus(send(publisher.key, { type: 'order.paid' }), 202);
    await eventually('both arrived', () => receiver.requests.length === 2);
    for (const { headers } of receiver.requests) expect(headers['posthorn-test']).toBe('true');
    await receiver.close();
  });

  test('`scopes` never allow more than `scope`', async () => {
    const tenant = newTenant();
    for (const [settings, path] of [
      [{ scope: 'read', scopes: ['events:read', 'events:publish'] }, 'scopes[1]'],
      [{ scope: 'read', scopes: ['secrets:read'] }, 'scopes[0]'],
      [{ scope: 'tenant', tenant, scopes: ['catalogue:write'] }, 'scopes[0]'],
      [{ scope: 'admin', scopes: ['everything'] }, 'scopes[0]'],
      [{ scope: 'admin', scopes: [] }, 'scopes'],
    ] as const) {
      const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', settings), 422);
      expect(body.errors).toMatchObject([{ path }]);
    }
    const { key } = await createKey({ scope: 'tenant', tenant, scopes: ['endpoints:read'] });
    await expectStatus(posthorn.api('GET', `/v1/endpoints?tenant=${world.tenant}`, undefined, { key }), 403);
  });

  test('the key sees its own scopes, and metrics need deliveries:read', async () => {
    const { key } = await createKey({ scope: 'read', scopes: ['events:read'] });
    const { body } = await expectStatus(posthorn.api('GET', '/v1/keys/current', undefined, { key }), 200);
    expect(body).toMatchObject({ scope: 'read', scopes: ['events:read'] });
    const elsewhere = { headers: { via: 'a proxy' } };
    await expectStatus(posthorn.api('GET', '/metrics', undefined, { key, ...elsewhere }), 403);
    const scraper = await createKey({ scope: 'read', scopes: ['deliveries:read'] });
    await expectStatus(posthorn.api('GET', '/metrics', undefined, { key: scraper.key, ...elsewhere }), 200);
  });
});

describe('expires_at', () => {
  test('a key works until then, and the 401 says when it expired', async () => {
    const expires_at = new Date(Date.now() + 1500).toISOString();
    const { key } = await createKey({ scope: 'read', expires_at });
    await expectStatus(listEndpoints(key), 200);
    const refused = await eventually('the key expires', async () => {
      const answer = await listEndpoints(key);
      return answer.status === 401 && answer;
    });
    expect(refused.body.detail).toContain(expires_at);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at) - 100);
  });

  test.each(['2020-01-01T00:00:00Z', 'tomorrow', '2027-02-30T00:00:00Z'])('%s is refused', async (time) => {
    const { body } = await expectStatus(
      posthorn.api('POST', '/v1/keys', { scope: 'read', expires_at: time }),
      422,
    );
    expect(body.errors).toMatchObject([{ path: 'expires_at' }]);
  });
});

describe('allowed_ips', () => {
  test('a key works only from there; behind a trusted proxy, the forwarded address counts', async () => {
    const { key } = await createKey({ scope: 'read', allowed_ips: ['203.0.113.0/24', '2001:db8::1'] });
    const refused = await expectStatus(listEndpoints(key), 403);
    expect(refused.body.detail).toContain('127.0.0.1');
    for (const [forwarded, status] of [
      ['203.0.113.9', 200],
      ['2001:db8::1', 200],
      ['203.0.114.9', 403],
      ['2001:db8::2', 403],
      // The client wrote the first entry itself.
      [`203.0.113.9, ${PROXY}`, 403],
      ['nonsense', 403],
    ] as const)
      await expectStatus(listEndpoints(key, { 'x-forwarded-for': forwarded }), status);
  });

  test('without a trusted proxy, a forwarded address does not count', async () => {
    const { key } = await createKey({ scope: 'read', allowed_ips: ['203.0.113.0/24'] });
    const direct = await createKey({ scope: 'read', allowed_ips: ['127.0.0.1'] });
    await expectStatus(listEndpoints(direct.key), 200);
    await expectStatus(listEndpoints(direct.key, { 'x-forwarded-for': '198.51.100.1' }), 403);
    await expectStatus(listEndpoints(key, { 'x-real-ip': '203.0.113.9' }), 403);
  });

  test.each(['localhost', '10.0.0.0/33', '10.0.0', '10.0.0.0/8/8', 'fe80::1%eth0', ''])(
    '%j is refused',
    async (range) => {
      const { body } = await expectStatus(
        posthorn.api('POST', '/v1/keys', { scope: 'read', allowed_ips: ['10.0.0.1', range] }),
        422,
      );
      expect(body.errors).toMatchObject([{ path: 'allowed_ips[1]' }]);
    },
  );
});

describe('PATCH /v1/keys/{id}', () => {
  test('changes the restrictions at once, and null lifts them', async () => {
    const { id, key } = await createKey({ scope: 'tenant', tenant: newTenant() });
    await expectStatus(listEndpoints(key), 200);
    const patch = (body: object) => posthorn.api('PATCH', `/v1/keys/${id}`, body);
    const { body } = await expectStatus(patch({ scopes: ['events:publish'], description: 'x' }), 200);
    expect(body).toMatchObject({ scopes: ['events:publish'], description: 'x', allowed_ips: null });
    await expectStatus(listEndpoints(key), 403);
    await expectStatus(patch({ scopes: null }), 200);
    await expectStatus(listEndpoints(key), 200);
    await expectStatus(patch({ scope: 'admin' }), 422);
    await expectStatus(patch({ scopes: ['catalogue:write'] }), 422);
  });

  test('a key as it was read changes nothing', async () => {
    const { id } = await createKey({
      scope: 'tenant',
      tenant: newTenant(),
      scopes: ['events:publish'],
      expires_at: new Date(Date.now() + 60_000).toISOString(),
      allowed_ips: ['10.0.0.1'],
      rate_limit: { per_second: 5 },
    });
    const read = async () => (await expectStatus(posthorn.api('GET', `/v1/keys/${id}`), 200)).body;
    const shown = await read();
    expect(shown.allowed_ips).toEqual(['10.0.0.1/32']);
    const audited = () =>
      posthorn.database.query('select count(*)::int from posthorn.audit_log where object_id = $1', [id]);
    const before = await audited();
    const { body } = await expectStatus(posthorn.api('PATCH', `/v1/keys/${id}`, shown), 200);
    expect(body).toEqual(shown);
    expect(await read()).toEqual(shown);
    expect(await audited()).toEqual(before);
  });
});

test('a key without secrets:read creates an endpoint and cannot read secrets', async () => {
  const tenant = newTenant();
  const endpoint = await createEndpoint(posthorn, { url: 'https://example.com/', tenant });
  const { key } = await createKey({ scope: 'tenant', tenant, scopes: ['endpoints:read', 'endpoints:write'] });
  const path = `/v1/endpoints/${endpoint.id}`;
  await expectStatus(posthorn.api('GET', path, undefined, { key }), 200);
  const { body } = await expectStatus(posthorn.api('GET', `${path}/secret`, undefined, { key }), 403);
  expect(body.detail).toContain('secrets:read');
});

describe('posthorn keys create', () => {
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, [MAIN, 'keys', 'create', ...args], {
      env: { POSTHORN_PUBLIC_URL: posthorn.url, POSTHORN_ADMIN_KEY: posthorn.key },
    });

  test('prints a key with these restrictions', async () => {
    const tenant = newTenant();
    const { stdout } = await run(
      ...['--scope', 'tenant', '--tenant', tenant, '--scopes', 'events:publish,events:read'],
      ...['--expires-at', '2999-01-01T00:00:00Z', '--allowed-ips', '127.0.0.1, 10.0.0.0/8', '--json'],
    );
    const created = JSON.parse(stdout);
    expect(created).toMatchObject({
      tenant,
      scopes: ['events:publish', 'events:read'],
      expires_at: '2999-01-01T00:00:00.000Z',
      allowed_ips: ['127.0.0.1/32', '10.0.0.0/8'],
    });
    await expectStatus(posthorn.api('GET', '/v1/events', undefined, { key: created.key }), 200);
    await expectStatus(listEndpoints(created.key), 403);
  });

  test('says what is wrong', async () => {
    await expect(run('--scope', 'read', '--scopes', 'secrets:read')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('scopes[0]'),
    });
  });
});
