/** Values that become headers: what a header cannot carry is refused by name, or encoded if it is stored already. */
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS } from '../../src/deliver/index.ts';
import { anEndpoint, anEvent, attempt } from '../support/attempts.ts';
import { createEndpoint, expectStatus, newReceiver, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const UNSAFE = ['v1\r\nx-injected: 1', 'v1\n', 'schl\u00fcssel', '\u2603', 'a\u007f', 'a\tb\u0001'];

const pathsOf = (answer: { readonly body: { readonly errors?: { path: string }[] } }): string[] =>
  (answer.body.errors ?? []).map(({ path }) => path);

describe('what a header cannot carry is a 422 that names the field:', () => {
  it.each(UNSAFE)('idempotency_key %j', async (idempotency_key) => {
    const event = { type: 'order.created', data: 1, tenant: newTenant(), idempotency_key };
    const one = await expectStatus(posthorn.api('POST', '/v1/events', event), 422);
    expect(pathsOf(one)).toEqual(['idempotency_key']);
    const batch = await posthorn.api('POST', '/v1/events/batch', { events: [event] });
    expect(batch.text).toContain('idempotency_key');
    expect(batch.body.results[0].status).not.toBe('accepted');
  });

  it.each(UNSAFE)('idempotency_key %j of posthorn.publish', async (key) => {
    const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
    onTestFinished(() => pool.end());
    const publish = 'select posthorn.publish(type => $1, data => $2, idempotency_key => $3)';
    await expect(pool.query(publish, ['order.created', '1', key])).rejects.toMatchObject({
      code: '22023',
      message: expect.stringContaining('idempotency_key must be 1 to 255 printable ASCII'),
    });
    await pool.query(publish, ['order.created', '1', 'order 1001: ~created']);
  });

  it.each(UNSAFE)('%j in the settings of an endpoint', async (value) => {
    const endpoint = { url: 'https://example.com/', tenant: newTenant() };
    const { id } = await createEndpoint(posthorn, { ...endpoint, api_version: 'v1' });
    for (const [path, settings] of [
      ['api_version', { api_version: value }],
      ['headers.x-team', { headers: { 'x-team': value } }],
      [`headers.${value}`, { headers: { [value]: 'a' } }],
      ['signature.header', { signature: { profile: 'hex', header: value } }],
      ['signature.prefix', { signature: { profile: 'hex', prefix: value } }],
      ['auth.token', { auth: { type: 'bearer', token: value } }],
    ] as const) {
      const created = await expectStatus(
        posthorn.api('POST', '/v1/endpoints', { ...endpoint, ...settings }),
        422,
      );
      expect(pathsOf(created)).toEqual([path]);
      await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, settings), 422);
    }
  });
});

it('what is stored already is sent percent-encoded', async () => {
  const receiver = await newReceiver();
  const deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
  });
  for (const value of UNSAFE) {
    const endpoint = anEndpoint(receiver.url, { signature: 'hex', apiVersion: value });
    const outcome = await attempt(deliverer, endpoint, { event: anEvent({ idempotencyKey: value }) });
    expect(outcome).toMatchObject({ statusCode: 200, error: null });
    const { headers } = receiver.requests.at(-1)!;
    expect(decodeURIComponent(headers['posthorn-api-version']!)).toBe(value);
    expect(decodeURIComponent(headers['x-idempotency-key']!)).toBe(value);
    expect(headers).not.toHaveProperty('x-injected');
  }
  await deliverer.close();
});
