/** A tenant that is named like the operator tenant must not learn what happens to other tenants. */
import { describe, expect, test } from 'vitest';
import { hashApiKey } from '../../src/manage/api-keys.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_OPERATIONAL_EVENTS_MS: '30ms' } });
const OPERATOR = 'posthorn';
const HOOK = 'https://example.com/hooks';

describe('keys for the operator tenant', () => {
  test.each(['tenant', 'read'])('a new %s key is refused', async (scope) => {
    const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', { scope, tenant: OPERATOR }), 422);
    expect(body.errors).toMatchObject([{ path: 'tenant' }]);
  });

  test('a key that already exists is refused when it is used', async () => {
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() });
    await posthorn.api('PUT', `/v1/tenants/${OPERATOR}`, {});
    await posthorn.database.query('update posthorn.api_keys set tenant = $1 where hash = $2', [
      OPERATOR,
      hashApiKey(body.key),
    ]);
    const refused = await expectStatus(posthorn.api('GET', '/v1/events', undefined, { key: body.key }), 403);
    expect(refused.body.detail).toContain('admin key');
  });
});

describe('operator: true', () => {
  test('may be set by admin keys only, and only in the operator tenant', async () => {
    const tenant = newTenant();
    const { body: mine } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant });
    const { id } = await createEndpoint(posthorn, { url: HOOK, tenant });
    for (const [method, path] of [
      ['POST', '/v1/endpoints'],
      ['PATCH', `/v1/endpoints/${id}`],
    ] as const) {
      const settings = { url: HOOK, operator: true };
      const { body } = await expectStatus(posthorn.api(method, path, settings, { key: mine.key }), 403);
      expect(body.errors).toMatchObject([{ path: 'operator' }]);
      // A field that stays as it is may be sent.
      const same = await posthorn.api(method, path, { ...settings, operator: false }, { key: mine.key });
      expect(same.status, same.text).toBeLessThan(300);
    }
    const elsewhere = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { url: HOOK, tenant, operator: true }),
      422,
    );
    expect(elsewhere.body.errors).toMatchObject([{ path: 'operator' }]);
    const { body } = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { url: HOOK, operator: true }),
      201,
    );
    expect(body).toMatchObject({ tenant: OPERATOR, operator: true });
  });

  test('without it, an endpoint of the operator tenant gets nothing about other tenants', async () => {
    const events = ['posthorn.*'];
    const [operator, other, failing] = [await newReceiver(), await newReceiver(), await newReceiver()];
    await createEndpoint(posthorn, { url: operator.url, tenant: OPERATOR, events, operator: true });
    await createEndpoint(posthorn, { url: other.url, tenant: OPERATOR, events });
    const tenant = newTenant();
    failing.answer({ status: 400 });
    await createEndpoint(posthorn, { url: failing.url, tenant });
    const ofOperator = await createEndpoint(posthorn, { url: failing.url, tenant: OPERATOR });
    await publish(posthorn, { type: 'a.b', tenant, data: 1 });
    const about = (wanted: string) => (request: { json(): { data: { tenant: string } } }) =>
      request.json().data.tenant === wanted;
    await operator.waitFor(about(tenant));
    // Its own tenant's events still arrive: they come after those that it must not get.
    await publish(posthorn, { type: 'a.b', tenant: OPERATOR, data: 1, endpoint_ids: [ofOperator.id] });
    await other.waitFor(about(OPERATOR));
    expect(other.requests.filter(about(tenant))).toEqual([]);
  });
});
