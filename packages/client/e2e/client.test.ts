import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createEndpoint,
  newReceiver,
  newTenant,
  untilDeliveries,
  usePosthorn,
} from '../../../test/support/posthorn.ts';
import { ConnectionError, Posthorn, ProblemError, TimeoutError } from '../src/index.ts';
import { Transport } from '../src/transport.ts';

const server = usePosthorn();
const createClient = (options: Partial<ConstructorParameters<typeof Posthorn>[0]> = {}): Posthorn =>
  new Posthorn({ url: server.url, key: server.key, ...options });

describe('client with a running Posthorn', () => {
  test('creates an endpoint, publishes events, reads the delivery, deletes the endpoint', async () => {
    const receiver = await newReceiver();
    const posthorn = createClient();
    const tenant = newTenant();
    const endpoint = await posthorn.endpoints.create({ url: receiver.url, tenant, events: ['order.*'] });
    expect(endpoint.secret).toMatch(/^whsec_/);
    const event = await posthorn.events.publish({ type: 'order.created', tenant, data: { order: 1 } });
    expect(event).toMatchObject({ deliveries: 1, duplicate: false });
    const [request] = await receiver.waitFor(1);
    expect(request!.json()).toMatchObject({ id: event.id, data: { order: 1 } });
    const [delivery] = await untilDeliveries(server, event.id, 'delivered');
    const attempts = await posthorn.deliveries.listAttempts(delivery!.id);
    expect(attempts.data).toMatchObject([{ status_code: 200, outcome: 'delivered' }]);
    expect((await posthorn.endpoints.update(endpoint.id, { description: 'x' })).description).toBe('x');
    const batch = await posthorn.events.publishBatch({
      events: [
        { type: 'a.b', tenant, data: 1 },
        { type: '', data: 1 },
      ],
    });
    expect(batch.results).toMatchObject([{ type: 'a.b' }, { error: { code: 'invalid' } }]);
    expect(await posthorn.endpoints.delete(endpoint.id)).toBeUndefined();
    expect(await posthorn.service.getHealth()).toEqual({ status: 'ok' });
  });

  test('a list can be awaited as one page or iterated over all pages', async () => {
    const receiver = await newReceiver();
    const posthorn = createClient();
    const tenant = newTenant();
    const createdIds: string[] = [];
    for (let i = 0; i < 5; i += 1)
      createdIds.unshift((await createEndpoint(server, { url: receiver.url, tenant })).id);
    const page = await posthorn.endpoints.list({ tenant, limit: 2 });
    expect(page.data.map(({ id }) => id)).toEqual(createdIds.slice(0, 2));
    const all: string[] = [];
    for await (const { id } of posthorn.endpoints.list({ tenant, limit: 2 })) all.push(id);
    expect(all).toEqual(createdIds);
    const sizes: number[] = [];
    for await (const { data } of posthorn.endpoints.list({ tenant, limit: 2 }).pages())
      sizes.push(data.length);
    expect(sizes).toEqual([2, 2, 1]);
  });

  test('a problem response throws a ProblemError with the problem', async () => {
    const posthorn = createClient();
    const missing = await posthorn.endpoints.get('ep_none/../x').catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(ProblemError);
    expect(missing).toMatchObject({
      code: 'not_found',
      status: 404,
      problem: { request_id: expect.stringMatching(/^req_/) },
    });
    const invalid = await posthorn.endpoints.create({ url: '' }).catch((error: unknown) => error);
    expect(invalid).toMatchObject({ code: 'invalid', problem: { errors: [{ path: 'url' }] } });
    await expect(createClient({ key: 'phk_wrong' }).keys.list()).rejects.toMatchObject({
      code: 'unauthorized',
    });
  });

  test.each(['publish', 'publishBatch'] as const)(
    '%s retries after the connection broke before the response, and publishes one event',
    async (method) => {
      const proxy = await cutResponses(2);
      const posthorn = createClient({ url: proxy.url });
      const tenant = newTenant();
      const event = { type: 'order.created', tenant, data: { order: 1 } };
      const result =
        method === 'publish'
          ? await posthorn.events.publish(event)
          : (await posthorn.events.publishBatch({ events: [event] })).results[0];
      expect(result).toMatchObject({ duplicate: true });
      expect(proxy.cutCount()).toBe(2);
      const events = await createClient().events.list({ tenant });
      expect(events.data).toHaveLength(1);
    },
  );

  test('creating an endpoint through a broken connection creates one endpoint and returns its secret', async () => {
    const receiver = await newReceiver();
    const proxy = await cutResponses(1);
    const tenant = newTenant();
    const { id, secret } = await createClient({ url: proxy.url }).endpoints.create({
      url: receiver.url,
      tenant,
    });
    expect(proxy.cutCount()).toBe(1);
    const posthorn = createClient();
    expect((await posthorn.endpoints.list({ tenant })).data).toMatchObject([{ id }]);
    expect((await posthorn.endpoints.getSecret(id)).secret).toBe(secret);
  });

  test('without retries a broken connection throws a ConnectionError, although the request may be executed', async () => {
    const receiver = await newReceiver();
    const proxy = await cutResponses(1);
    const tenant = newTenant();
    const posthorn = createClient({ url: proxy.url, retries: 0 });
    await expect(posthorn.endpoints.create({ url: receiver.url, tenant })).rejects.toBeInstanceOf(
      ConnectionError,
    );
    expect((await createClient().endpoints.list({ tenant })).data).toHaveLength(1);
  });
});

describe('client retries', () => {
  const OK = { status: 200, headers: { 'content-type': 'application/json' }, body: '{"status":"ok"}' };

  /** Starts a receiver that sends these responses in turn, and repeats the last one. */
  async function startAnswering(
    ...answers: { status: number; headers?: Record<string, string>; body?: string }[]
  ) {
    const receiver = await newReceiver();
    receiver.answer(({ index }) => answers[Math.min(index, answers.length - 1)]!);
    return { receiver, posthorn: createClient({ url: receiver.url }) };
  }

  test('retries 429 and 503 after the time of Retry-After', async () => {
    const { receiver, posthorn } = await startAnswering(
      { status: 503, headers: { 'retry-after': '0' } },
      { status: 429, headers: { 'retry-after': '1' } },
      OK,
    );
    expect(await posthorn.service.getHealth()).toEqual({ status: 'ok' });
    const [, second, third] = receiver.requests;
    expect(third!.at - second!.at).toBeGreaterThanOrEqual(990);
  });

  test('retries a POST without a key after 429 but not after 503, and a POST that only reads after both', async () => {
    const countAttempts = async (status: number, request: object) => {
      const { receiver } = await startAnswering({ status, headers: { 'retry-after': '0' } }, OK);
      const transport = new Transport({ url: receiver.url, key: 'phk_x' });
      await transport.request('POST', '/v1/x', request).catch(() => {});
      return receiver.requests.length;
    };
    expect(await countAttempts(429, {})).toBe(2);
    expect(await countAttempts(503, {})).toBe(1);
    expect(await countAttempts(503, { reads: true })).toBe(2);
  });

  test('retries request_in_progress with the same idempotency key', async () => {
    const { receiver, posthorn } = await startAnswering(
      {
        status: 409,
        headers: { 'content-type': 'application/problem+json', 'retry-after': '0' },
        body: JSON.stringify({ code: 'request_in_progress', status: 409, detail: 'under way' }),
      },
      OK,
    );
    await posthorn.endpoints.pause('ep_1');
    const [first, second] = receiver.requests.map(({ headers }) => headers['idempotency-key']);
    expect(second).toBe(first);
  });

  test('sends the same idempotency key in every attempt: the caller’s, the event’s, or a new one', async () => {
    const event = { type: 'a.b', data: 1 };
    const collectKeys = async (publish: (posthorn: Posthorn) => Promise<unknown>) => {
      const { receiver, posthorn } = await startAnswering(
        { status: 503, headers: { 'retry-after': '0' } },
        OK,
      );
      await publish(posthorn).catch(() => {});
      return receiver.requests.map(({ headers }) => headers['idempotency-key']);
    };
    const [first, second] = await collectKeys((posthorn) => posthorn.events.publish(event));
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first);
    expect(
      await collectKeys((posthorn) => posthorn.events.publish(event, { idempotencyKey: 'mine' })),
    ).toEqual(['mine', 'mine']);
    expect(
      await collectKeys((posthorn) => posthorn.events.publish({ ...event, idempotency_key: 'own' })),
    ).toEqual([undefined, undefined]);
    expect(await collectKeys((posthorn) => posthorn.events.publish(event, { retries: 0 }))).toEqual([
      undefined,
    ]);
  });

  test('gives up after the configured retries, or if Retry-After is too long', async () => {
    const { receiver, posthorn } = await startAnswering({ status: 503, headers: { 'retry-after': '0' } });
    await expect(posthorn.service.getHealth({ retries: 2 })).rejects.toMatchObject({ status: 503 });
    expect(receiver.requests).toHaveLength(3);
    const limited = await startAnswering({ status: 429, headers: { 'retry-after': '3600' } });
    await expect(limited.posthorn.service.getHealth()).rejects.toMatchObject({ status: 429 });
    expect(limited.receiver.requests).toHaveLength(1);
  });

  test('does not retry 500', async () => {
    const { receiver, posthorn } = await startAnswering({ status: 500, body: 'oops' });
    await expect(posthorn.service.getHealth()).rejects.toMatchObject({
      status: 500,
      message: expect.stringContaining('oops'),
    });
    expect(receiver.requests).toHaveLength(1);
  });

  test('throws a TimeoutError after the timeout, and stops at once when the caller aborts', async () => {
    const receiver = await newReceiver();
    receiver.hang();
    const posthorn = createClient({ url: receiver.url });
    await expect(posthorn.service.getHealth({ timeoutMs: 50, retries: 1 })).rejects.toBeInstanceOf(
      TimeoutError,
    );
    expect(receiver.requests).toHaveLength(2);
    const reason = new Error('enough');
    await expect(posthorn.service.getHealth({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const waiting = posthorn.service.getHealth({ signal: controller.signal });
    await receiver.waitFor(3);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    // Aborting also ends the pause before a retry.
    receiver.release();
    receiver.answer({ status: 429, headers: { 'retry-after': '30' } });
    const between = new AbortController();
    const paused = posthorn.service.getHealth({ signal: between.signal });
    await receiver.waitFor(4);
    setTimeout(() => between.abort(reason), 20);
    await expect(paused).rejects.toBe(reason);
  });
});

/** A proxy to Posthorn that breaks the connection before the first responses: their requests were executed. */
async function cutResponses(times: number): Promise<{ url: string; cutCount(): number }> {
  let cutCount = 0;
  const sockets = new Set<Socket>();
  const { hostname, port } = new URL(server.url);
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      if (cutCount >= times) return void client.write(bytes);
      cutCount += 1;
      client.resetAndDestroy();
      upstream.destroy();
    });
    client.on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
    await once(proxy, 'close');
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cutCount: () => cutCount };
}
