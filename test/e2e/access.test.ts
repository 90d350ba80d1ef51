import { createHash } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  untilDeliveries,
  usePosthorns,
} from '../support/posthorn.ts';

const [posthorn, other] = usePosthorns({}, { args: ['--role', 'api'] });

interface NewKey {
  readonly id: string;
  readonly key: string;
  readonly scope: string;
  readonly tenant: string | null;
  readonly prefix: string;
}

async function createKey(settings: {
  scope: string;
  tenant?: string;
  description?: string;
}): Promise<NewKey> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body;
}

const listKeys = async () => (await posthorn.api('GET', '/v1/keys?limit=250')).body.data;

describe('SEC-1: API keys', () => {
  test.each(['bearer', 'BEARER', 'Bearer  '])(
    'the scheme of the Authorization header is case-insensitive: %s',
    async (scheme) => {
      const headers = { authorization: `${scheme} ${posthorn.key}` };
      await expectStatus(posthorn.api('GET', '/v1/keys/current', undefined, { key: null, headers }), 200);
    },
  );

  test('no key, a wrong key, or another scheme is 401', async () => {
    const tries = [
      {},
      { headers: { authorization: 'Bearer phk_wrong' } },
      { headers: { authorization: `Basic ${Buffer.from('admin:admin').toString('base64')}` } },
      { headers: { authorization: posthorn.key } },
    ];
    for (const attempt of tries) {
      const answer = await posthorn.api('GET', '/v1/endpoints', undefined, { key: null, ...attempt });
      expect(answer.body).toMatchObject({ status: 401, code: 'unauthorized' });
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    }
    // Without a key, the answer does not reveal whether an object exists.
    const unknown = await posthorn.api('GET', '/v1/endpoints/ep_none', undefined, { key: null });
    expect(unknown.status).toBe(401);
  });

  test('a key is shown once, prefixed, with at least 128 random bits, and stored as a hash only', async () => {
    const { key, ...shown } = await createKey({ scope: 'tenant', tenant: 'acme', description: 'for CI' });
    expect(key).toMatch(/^phk_[A-Za-z0-9_-]{22,}$/);
    expect(shown).toMatchObject({
      scope: 'tenant',
      tenant: 'acme',
      description: 'for CI',
      prefix: key.slice(0, 10),
    });

    const listed = (await listKeys()).find(({ id }: NewKey) => id === shown.id);
    expect(listed).toEqual({ ...shown, last_used_at: null });
    expect(JSON.stringify(listed)).not.toContain(key);

    const [row] = await posthorn.database.query(
      'select to_jsonb(k) as all, hash from posthorn.api_keys k where prefix = $1',
      [shown.prefix],
    );
    expect(JSON.stringify(row!.all)).not.toContain(key);
    expect(JSON.stringify(row!.all)).not.toContain(key.slice(10));
    expect(row!.hash).toEqual(createHash('sha256').update(key).digest());
  });

  test('a key shows when it was last used', async () => {
    const { id, key, tenant } = await createKey({ scope: 'tenant', tenant: newTenant() });
    await expectStatus(posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`, undefined, { key }), 200);
    const used = await eventually(
      'last_used_at is shown',
      async () =>
        (await listKeys()).find((listed: NewKey & { last_used_at: string | null }) => listed.id === id)
          ?.last_used_at,
    );
    expect(Math.abs(Date.now() - Date.parse(used))).toBeLessThan(60_000);
  });

  test('the rate limit of a key applies in each process, and the 429 says when to retry', async () => {
    const limit = { per_second: 0.01, burst: 3 };
    const tenant = newTenant();
    const { body: made } = await expectStatus(
      posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant, rate_limit: limit }),
      201,
    );
    expect(made.rate_limit).toEqual(limit);
    expect((await listKeys())[0]).toMatchObject({ id: made.id, rate_limit: limit });
    for (const process of [posthorn, other]) {
      const ask = () => process.api('GET', '/v1/endpoints', undefined, { key: made.key });
      for (let i = 0; i < 3; i += 1) await expectStatus(ask(), 200);
      const refused = await expectStatus(ask(), 429);
      expect(refused.body.code).toBe('rate_limited');
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
      // Publishing counts too, and a batch is one request.
      const events = [{ type: 'a.b', data: 1 }];
      await expectStatus(process.api('POST', '/v1/events/batch', { events }, { key: made.key }), 429);
    }
    // Revoking a key clears the cache of keys. The bucket of this key must not be refilled by that.
    const another = await createKey({ scope: 'tenant', tenant });
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${another.id}`), 204);
    await expectStatus(posthorn.api('GET', '/v1/endpoints', undefined, { key: made.key }), 429);
  });

  test('the configured limit applies to keys without their own limit, but not to the configured admin key', async () => {
    const limited = await startTestPosthorn({
      database: posthorn.database,
      inProcess: true,
      env: {
        POSTHORN_ROLE: 'api',
        POSTHORN_KEY_REQUESTS_PER_SECOND: '0.01',
        POSTHORN_KEY_REQUESTS_BURST: '1',
      },
    });
    onTestFinished(() => limited.stop());
    const { key } = await createKey({ scope: 'read' });
    const { body: own } = await posthorn.api('POST', '/v1/keys', {
      scope: 'read',
      rate_limit: { per_second: 1000 },
    });
    expect(own.rate_limit).toEqual({ per_second: 1000, burst: 1000 });
    await expectStatus(limited.api('GET', '/v1/endpoints', undefined, { key }), 200);
    await expectStatus(limited.api('GET', '/v1/endpoints', undefined, { key }), 429);
    for (let i = 0; i < 3; i += 1) {
      await expectStatus(limited.api('GET', '/v1/endpoints', undefined, { key: own.key }), 200);
      await expectStatus(limited.api('GET', '/v1/endpoints'), 200);
    }
  });

  test('a revoked key stops working at once, in every process', async () => {
    const { id, key } = await createKey({ scope: 'tenant', tenant: newTenant() });
    for (const process of [posthorn, other]) {
      await expectStatus(process.api('GET', '/v1/endpoints', undefined, { key }), 200);
    }
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${id}`), 204);
    await expectStatus(posthorn.api('GET', '/v1/endpoints', undefined, { key }), 401);
    // A notification tells the other process, which takes milliseconds.
    await eventually(
      'the other process refuses it',
      async () => (await other.api('GET', '/v1/endpoints', undefined, { key })).status === 401,
      { timeoutMs: 1000 },
    );
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${id}`), 404);
    expect((await listKeys()).map((listed: NewKey) => listed.id)).not.toContain(id);
  });

  test('only an admin key can create, list and revoke keys', async () => {
    const tenant = newTenant();
    const mine = await createKey({ scope: 'tenant', tenant });
    for (const key of [mine.key, (await createKey({ scope: 'read' })).key]) {
      for (const [method, path, body] of [
        ['POST', '/v1/keys', { scope: 'tenant', tenant }],
        ['GET', '/v1/keys'],
        ['DELETE', `/v1/keys/${mine.id}`],
      ] as const) {
        const answer = await posthorn.api(method, path, body, { key });
        expect(answer.body, `${method} ${path}`).toMatchObject({ status: 403, code: 'forbidden' });
      }
    }
    const admin = await createKey({ scope: 'admin' });
    await expectStatus(posthorn.api('GET', '/v1/keys', undefined, { key: admin.key }), 200);
  });

  test.each([
    [{ scope: 'tenant' }, 'tenant'],
    [{ scope: 'admin', tenant: 'acme' }, 'tenant'],
    [{ scope: 'root' }, 'scope'],
    [{}, 'scope'],
    [{ scope: 'read', tenant: '' }, 'tenant'],
    [{ scope: 'admin', hash: 'x' }, 'hash'],
    [{ scope: 'read', rate_limit: { per_second: 0 } }, 'rate_limit.per_second'],
    [{ scope: 'read', rate_limit: { burst: 5 } }, 'rate_limit.per_second'],
  ])('an invalid new key is refused: %j', async (settings, path) => {
    const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', settings), 422);
    expect(body.errors).toMatchObject([{ path }]);
  });

  test('a read key can read and cannot change anything', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    for (const { key } of [await createKey({ scope: 'read' }), await createKey({ scope: 'read', tenant })]) {
      const { body } = await expectStatus(
        posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`, undefined, { key }),
        200,
      );
      expect(body.data).toMatchObject([{ id: endpoint.id }]);
      for (const [method, path, change] of [
        ['POST', '/v1/events', { tenant, type: 'a.b', data: 1 }],
        ['POST', '/v1/events/batch', { events: [{ tenant, type: 'a.b', data: 1 }] }],
        ['POST', '/v1/endpoints', { url: receiver.url, tenant }],
        ['PATCH', `/v1/endpoints/${endpoint.id}`, { description: 'x' }],
        ['POST', `/v1/endpoints/${endpoint.id}/pause`, undefined],
        ['DELETE', `/v1/endpoints/${endpoint.id}`, undefined],
      ] as const) {
        const answer = await posthorn.api(method, path, change, { key });
        expect(answer.body, `${method} ${path}`).toMatchObject({ status: 403, code: 'forbidden' });
      }
    }
  });
});

describe('SEC-2: tenants do not see each other', () => {
  test('a tenant key implies its tenant, and naming another tenant is 403', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { key } = await createKey({ scope: 'tenant', tenant });
    const endpoint = (
      await expectStatus(posthorn.api('POST', '/v1/endpoints', { url: receiver.url }, { key }), 201)
    ).body;
    expect(endpoint.tenant).toBe(tenant);
    const event = await publish(posthorn, { type: 'a.b', data: 1 }, { key });
    expect(event).toMatchObject({ tenant, deliveries: 1 });

    const foreign = newTenant();
    for (const [method, path, body] of [
      ['POST', '/v1/events', { tenant: foreign, type: 'a.b', data: 1 }],
      ['POST', '/v1/endpoints', { tenant: foreign, url: receiver.url }],
      ['GET', `/v1/endpoints?tenant=${foreign}`],
      ['GET', `/v1/deliveries?tenant=${foreign}`],
    ] as const) {
      const answer = await posthorn.api(method, path, body, { key });
      expect(answer.body, `${method} ${path}`).toMatchObject({ status: 403, code: 'forbidden' });
    }
  });

  // openapi.test.ts tests every route.
  test('no filter finds objects of another tenant', async () => {
    const receiver = await newReceiver();
    const theirs = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant: theirs });
    receiver.answer({ status: 404 });
    const event = await publish(posthorn, {
      tenant: theirs,
      type: 'a.b',
      data: 'private',
      idempotency_key: 'k',
    });
    await untilDeliveries(posthorn, event.id, 'dead');
    const { key } = await createKey({ scope: 'tenant', tenant: newTenant() });
    for (const path of [
      `/v1/deliveries?event_id=${event.id}`,
      '/v1/events?idempotency_key=k',
      '/v1/events?has=dead',
    ]) {
      expect((await posthorn.api('GET', path, undefined, { key })).body.data, path).toEqual([]);
    }
  });

  test('SIG-5: only the answer to the creation contains the secret of an endpoint, and the database stores it encrypted', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id, secret } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const answers = await Promise.all([
      posthorn.api('GET', `/v1/endpoints/${id}`),
      posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`),
      posthorn.api('PATCH', `/v1/endpoints/${id}`, { description: 'x' }),
    ]);
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain(secret.slice(6));
    }
    const rows = await posthorn.database.query('select ciphertext from posthorn.endpoint_secrets');
    for (const { ciphertext } of rows) expect(ciphertext.includes(secret)).toBe(false);
    expect(posthorn.output()).not.toContain(secret.slice(6));
    expect(posthorn.output()).not.toContain(posthorn.key);
  });
});
