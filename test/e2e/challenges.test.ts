import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type Answer,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { Behaviour, RecordedRequest } from '../support/receiver.ts';

/** Challenges are required for tenant keys only, so one server can test both cases: admin keys need none. */
const posthorn = usePosthorn({
  env: {
    POSTHORN_REQUIRE_CHALLENGE: 'true',
    POSTHORN_CHALLENGE_TIMEOUT_MS: '2500',
    POSTHORN_CHALLENGES_AT_ONCE: '8',
    POSTHORN_PUBLIC_URL: 'https://hooks.posthorn.test',
  },
});

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const echo: Behaviour = (request) => ({ body: request.json().data?.challenge });

function signatureOf(request: RecordedRequest, secret: string): string {
  const { 'webhook-id': id, 'webhook-timestamp': at } = request.headers;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${at}.`).update(request.body).digest('base64')}`;
}

const create = (body: object, key = posthorn.key): Promise<Answer> =>
  posthorn.api('POST', '/v1/endpoints', body, { key });
const endpointsOf = async (tenant: string) =>
  (await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data;
const tenantKey = async (tenant: string): Promise<string> =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201)).body.key;

describe('HLT-5: a new endpoint', () => {
  test('is created after its receiver has echoed the token, and gets events', async () => {
    const receiver = await newReceiver();
    receiver.answer(echo);
    const tenant = newTenant();
    const made = await create({ url: receiver.url, tenant, challenge: 'echo', secret: SECRET });
    expect(made).toMatchObject({ status: 201, body: { challenge: 'echo' } });
    const [request] = receiver.requests;
    expect(request!.json()).toMatchObject({ type: 'posthorn.challenge' });
    expect(request!.headers['webhook-signature']).toBe(signatureOf(request!, SECRET));
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
    const log = await posthorn.api('GET', `/v1/deliveries?endpoint_id=${made.body.id}`);
    expect(log.body.data).toHaveLength(1);
  });

  test('is not created if its receiver does not echo the token', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const refused = await create({ url: receiver.url, tenant, challenge: 'echo' });
    const message = 'The receiver answered 200 with an empty body instead of the token.';
    expect(refused).toMatchObject({
      status: 422,
      body: {
        code: 'challenge_failed',
        detail: `The receiver did not pass the challenge "echo". ${message}`,
        errors: [{ path: 'url', message }],
      },
    });
    expect(await endpointsOf(tenant)).toEqual([]);
  });

  test('is created after the CloudEvents handshake', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const challenge = 'cloudevents';
    receiver.answer({ headers: { 'webhook-allowed-origin': 'other.test' } });
    expect(await create({ url: receiver.url, tenant, challenge })).toMatchObject({
      status: 422,
      body: { code: 'challenge_failed' },
    });
    expect(await endpointsOf(tenant)).toEqual([]);
    receiver.answer((request) => ({
      headers: { 'webhook-allowed-origin': request.headers['webhook-request-origin']! },
    }));
    expect(await create({ url: receiver.url, tenant, challenge })).toMatchObject({
      status: 201,
      body: { challenge },
    });
    expect(receiver.requests.map(({ method }) => method)).toEqual(['OPTIONS', 'OPTIONS']);
    expect(receiver.requests[1]!.headers['webhook-request-origin']).toBe('hooks.posthorn.test');
  });

  test('EGR-1, EGR-4: never challenges a private address, and the error reveals nothing about it', async () => {
    const tenant = newTenant();
    const refused = await create({ url: 'https://10.0.0.1/', tenant, challenge: 'echo' });
    expect(refused).toMatchObject({ status: 422, body: { code: 'url_forbidden' } });
    const closed = await newReceiver();
    await closed.close();
    const nobody = await create({ url: closed.url, tenant, challenge: 'echo' });
    expect(nobody).toMatchObject({ status: 422, body: { code: 'challenge_failed' } });
    expect(nobody.text).not.toContain('127.0.0.1');
    expect(await create({ url: closed.url, tenant, challenge: 'dance' })).toMatchObject({
      status: 422,
      body: { code: 'invalid', errors: [{ path: 'challenge' }] },
    });
  });
});

describe('HLT-5: an endpoint that changes', () => {
  test('needs the consent of the new URL, and no consent for other changes', async () => {
    const [before, after] = [await newReceiver(), await newReceiver()];
    before.answer(echo);
    const tenant = newTenant();
    const { id, secret } = await createEndpoint(posthorn, { url: before.url, tenant, challenge: 'echo' });
    const patch = (body: object) => posthorn.api('PATCH', `/v1/endpoints/${id}`, body);
    expect(await patch({ url: after.url, description: 'moved' })).toMatchObject({
      status: 422,
      body: { code: 'challenge_failed' },
    });
    const { body: shown } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(shown).toMatchObject({ url: `${before.url}/`, description: '' });

    await expectStatus(patch({ description: 'same place', url: before.url }), 200);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    expect([before.requests.length, after.requests.length]).toEqual([1, 1]);

    after.answer(echo);
    expect(await patch({ url: after.url })).toMatchObject({ status: 200, body: { url: `${after.url}/` } });
    const request = after.requests[1]!;
    expect(request.headers['webhook-signature']).toBe(signatureOf(request, secret));
  });

  test('is challenged when a challenge is set, but not when it is removed', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const patch = (body: object) => posthorn.api('PATCH', `/v1/endpoints/${id}`, body);
    expect(receiver.requests).toHaveLength(0);
    expect(await patch({ challenge: 'echo' })).toMatchObject({
      status: 422,
      body: { code: 'challenge_failed' },
    });
    receiver.answer(echo);
    expect(await patch({ challenge: 'echo' })).toMatchObject({ status: 200, body: { challenge: 'echo' } });
    expect(await patch({ challenge: 'echo' })).toMatchObject({ status: 200 });
    expect(await patch({ challenge: null, url: `${receiver.url}/next` })).toMatchObject({
      status: 200,
      body: { challenge: null, url: `${receiver.url}/next` },
    });
    expect(receiver.requests).toHaveLength(2);
  });

  test('by two requests at once is stored only with the settings that its receiver agreed to', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    receiver.hang();
    const challenged = posthorn.api('PATCH', `/v1/endpoints/${id}`, { challenge: 'echo' });
    await receiver.waitFor(1);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { url: `${receiver.url}/other` }), 200);
    receiver.answer(echo);
    receiver.release();
    expect(await challenged).toMatchObject({ status: 409, body: { code: 'conflict' } });
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body).toMatchObject({ url: `${receiver.url}/other`, challenge: null });
  });
});

test('HLT-5: if challenges are required, a tenant must choose one', async () => {
  const receiver = await newReceiver();
  receiver.answer(echo);
  const tenant = newTenant();
  const key = await tenantKey(tenant);
  const missing = { status: 422, body: { code: 'invalid', errors: [{ path: 'challenge' }] } };
  expect(await create({ url: receiver.url }, key)).toMatchObject(missing);
  const made = await create({ url: receiver.url, challenge: 'echo' }, key);
  expect(made.status).toBe(201);
  const patch = (id: string, body: object) => posthorn.api('PATCH', `/v1/endpoints/${id}`, body, { key });
  expect(await patch(made.body.id, { challenge: null })).toMatchObject(missing);
  // An endpoint without a challenge (an older one, or one of an admin) stays as it is until its URL changes.
  const old = await createEndpoint(posthorn, { url: receiver.url, tenant });
  await expectStatus(patch(old.id, { description: 'mine', challenge: null }), 200);
  expect(await patch(old.id, { url: `${receiver.url}/x` })).toMatchObject(missing);
  await expectStatus(patch(old.id, { url: `${receiver.url}/x`, challenge: 'echo' }), 200);
  expect((await posthorn.api('GET', `/v1/endpoints/${made.body.id}`)).body.challenge).toBe('echo');
});

test('HLT-5: receivers that hang block neither the API nor another tenant', async () => {
  const [slow, quick] = [await newReceiver(), await newReceiver()];
  slow.hang();
  quick.answer(echo);
  const hanging: Promise<Answer>[] = [];
  const tenants = [newTenant(), newTenant(), newTenant()];
  for (const tenant of tenants) {
    for (let n = 0; n < 2; n += 1) hanging.push(create({ url: slow.url, tenant, challenge: 'echo' }));
  }
  await slow.waitFor(6);
  // More challenges wait than there are database connections.
  const limited = await create({ url: quick.url, tenant: tenants[0], challenge: 'echo' });
  expect(limited).toMatchObject({
    status: 429,
    body: { code: 'rate_limited' },
    headers: { 'retry-after': '2' },
  });
  expect((await create({ url: quick.url, tenant: newTenant(), challenge: 'echo' })).status).toBe(201);
  const last = newTenant();
  for (let n = 0; n < 2; n += 1) hanging.push(create({ url: slow.url, tenant: last, challenge: 'echo' }));
  await slow.waitFor(8);
  const full = await create({ url: quick.url, tenant: newTenant(), challenge: 'echo' });
  expect(full).toMatchObject({ status: 503, body: { code: 'overloaded' }, headers: { 'retry-after': '2' } });
  for (const answer of await Promise.all(hanging)) {
    expect(answer).toMatchObject({
      status: 422,
      body: { code: 'challenge_failed', errors: [{ message: 'No answer within the deadline.' }] },
    });
  }
  expect((await create({ url: quick.url, tenant: tenants[0], challenge: 'echo' })).status).toBe(201);
});
