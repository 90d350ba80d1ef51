import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { drip } from '../support/behaviours.ts';
import {
  attemptsOf,
  createEndpoint,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();

describe('the request to a receiver', () => {
  test('DLV-1: is a POST with an envelope around the data and descriptive headers', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: `${receiver.url}/hooks?a=1`,
      tenant,
      api_version: '2027-01-01',
      headers: { 'X-Custom': 'mine' },
    });
    const event = await publish(posthorn, {
      tenant,
      type: 'order.created',
      data: { order: 42 },
      schema_version: '3',
      idempotency_key: 'order-42',
      headers: { 'x-trace': 'abc' },
    });

    const [request] = await receiver.waitFor(1);
    expect(request).toMatchObject({ method: 'POST', path: '/hooks?a=1' });
    expect(request?.body.toString()).toBe(
      `{"id":"${event.id}","type":"order.created","timestamp":"${event.created_at}","schema_version":"3",` +
        `"api_version":"2027-01-01","idempotency_key":"order-42","data":{"order":42}}`,
    );
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Posthorn\/\d+\.\d+\.\d+$/),
      'webhook-id': event.id,
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,/),
      'posthorn-event-type': 'order.created',
      'posthorn-delivery': delivery!.id,
      'posthorn-attempt': '1',
      'posthorn-api-version': '2027-01-01',
      'x-custom': 'mine',
      'x-trace': 'abc',
    });
    expect(request?.headers).not.toHaveProperty('posthorn-retry-reason');
    expect(delivery).toMatchObject({ endpoint_id: endpoint.id, attempts: 1, last_status_code: 200 });
    const attempts = await attemptsOf(posthorn, delivery!.id);
    expect(attempts).toMatchObject([
      { number: 1, status_code: 200, outcome: 'delivered', error: null, url: `${receiver.url}/hooks?a=1` },
    ]);
    // The recorded headers are those that arrived, except for headers of the connection.
    const { host, connection, 'content-length': length, ...headers } = request!.headers;
    expect(attempts[0]!.request_headers).toEqual({ ...headers, 'x-custom': '[redacted]' });
  });

  test('DLV-1: has a link instead of the data for a thin endpoint', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, payload: 'thin' });
    const event = await publish(posthorn, { tenant, type: 'order.created', data: { secret: true } });
    const [request] = await receiver.waitFor(1);
    expect(request?.json()).toEqual({
      id: event.id,
      type: 'order.created',
      timestamp: event.created_at,
      url: `${posthorn.url}/v1/events/${event.id}`,
    });
  });
});

describe('SIG: signatures, verified by the official library on the raw bytes', () => {
  test('SIG-1: requests are signed with the secret that was shown at the creation of the endpoint', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { secret } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    await publish(
      posthorn,
      `{"tenant":"${tenant}","type":"order.created","data":{ "name" : "Zoë", "n": 1.10 }}`,
    );
    const [request] = await receiver.waitFor(1);
    const verified = new Webhook(secret).verify(request!.body, { ...request!.headers });
    expect(verified).toMatchObject({ type: 'order.created', data: { name: 'Zoë' } });

    const otherBytes = Buffer.from(JSON.stringify(request!.json()));
    expect(() => new Webhook(secret).verify(otherBytes, { ...request!.headers })).toThrow(
      'No matching signature',
    );
  });

  test('SIG-1: a secret that the user chose is used as it is', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const secret = `whsec_${Buffer.from('a secret of thirty-two characters').toString('base64')}`;
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant, secret });
    expect(endpoint.secret).toBe(secret);
    await publish(posthorn, { tenant, type: 'order.created', data: null });
    const [request] = await receiver.waitFor(1);
    expect(new Webhook(secret).verify(request!.body, { ...request!.headers })).toMatchObject({ data: null });
  });

  test('SIG-3: a retry has the same id and body, and a new timestamp and signature', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { secret } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 1.1], jitter: 'none' },
    });
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const event = await publish(posthorn, { tenant, type: 'order.created', data: { n: 1 } });
    const [first, second] = await receiver.waitFor(2);
    for (const request of [first!, second!]) {
      expect(new Webhook(secret).verify(request.body, { ...request.headers })).toMatchObject({
        id: event.id,
      });
    }
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
    expect(second!.body).toEqual(first!.body);
    expect(Number(second!.headers['webhook-timestamp'])).toBeGreaterThan(
      Number(first!.headers['webhook-timestamp']),
    );
    expect(second!.headers['webhook-signature']).not.toBe(first!.headers['webhook-signature']);
    // DLV-8
    expect(second!.headers).toMatchObject({ 'posthorn-attempt': '2', 'posthorn-retry-reason': 'http_5xx' });
  });
});

describe('DLV-2: the deadline covers the whole request, and the status line decides', () => {
  test('no answer within timeout_ms is a failure, and the connection is closed', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      timeout_ms: 1000,
      retry: { schedule: [0] },
    });
    receiver.hang();
    const event = await publish(posthorn, { tenant, type: 'order.created', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({ reason: 'exhausted', last_error: 'timeout', last_status_code: null });
    const [attempt] = await attemptsOf(posthorn, delivery!.id);
    expect(attempt).toMatchObject({ outcome: 'dead', error: { class: 'timeout' } });
    expect(attempt!.duration_ms).toBeGreaterThanOrEqual(990);
    expect(attempt!.duration_ms).toBeLessThan(5000);
    await receiver.waitForNoSockets();
  });

  test('endless headers are a timeout too', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, timeout_ms: 1000, retry: { schedule: [0] } });
    receiver.answer(drip('HTTP/1.1 200 OK\r\n', 'x-drip: 1\r\n'));
    const event = await publish(posthorn, { tenant, type: 'order.created', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({ last_error: 'timeout' });
  });

  test('a 200 whose body exceeds the deadline is delivered, with a truncated body', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, timeout_ms: 1000 });
    receiver.answer(
      drip('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100000\r\n\r\nstart', '.'),
    );
    const event = await publish(posthorn, { tenant, type: 'order.created', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    const [attempt] = await attemptsOf(posthorn, delivery!.id);
    expect(attempt).toMatchObject({ status_code: 200, outcome: 'delivered', response_truncated: true });
    expect(attempt!.response_body).toMatch(/^start\.*$/);
    expect(receiver.requests).toHaveLength(1);
    await receiver.waitForNoSockets();
  });

  test('DLV-5: a response body is truncated at the cap', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    receiver.answer({ status: 200, body: 'x'.repeat(100_000) });
    const event = await publish(posthorn, { tenant, type: 'order.created', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    const [attempt] = await attemptsOf(posthorn, delivery!.id);
    expect(attempt).toMatchObject({ response_truncated: true });
    expect(attempt!.response_body).toBe('x'.repeat(16 * 1024));
  });
});

test('DLV-3: custom header names keep their case on the wire', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    headers: { 'X-Team': 'a', 'X-API-Key': 'secret', 'x-lower': 'b' },
    signature: { profile: 'hex', header: 'X-Acme-Signature' },
  });
  const headers = { 'X-Event': 'c', 'X-LOWER': 'of the event' };
  await publish(posthorn, { tenant, type: 'a.b', data: 1, headers });
  const [request] = await receiver.waitFor(1);
  const custom = request!.rawHeaders
    .filter((_, index) => index % 2 === 0)
    .filter((name) => /^x-/i.test(name));
  expect(custom).toEqual(
    expect.arrayContaining(['X-Team', 'X-API-Key', 'x-lower', 'X-Event', 'X-Acme-Signature']),
  );
  expect(custom).toHaveLength(new Set(custom.map((name) => name.toLowerCase())).size);
  expect(request!.headers).toMatchObject({ 'x-lower': 'b', 'x-team': 'a', 'x-api-key': 'secret' });
});
