import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { anEndpoint, anEvent, attempt, TEST_SECRET } from '../../test/support/attempts.ts';
import { rawThenClose, reset } from '../../test/support/behaviours.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { deliveryIdOf } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import {
  buildBody,
  createDeliverer,
  DEVELOPMENT_EGRESS,
  type Deliverer,
  type DelivererOptions,
  STRICT_EGRESS,
} from './index.ts';

let receiver: Receiver;
let deliverer: Deliverer;
const others: { close(): Promise<void> }[] = [];

const options: DelivererOptions = {
  egress: DEVELOPMENT_EGRESS,
  userAgent: 'Posthorn/test',
  publicUrl: 'https://posthorn.test',
  ca: certificates.authority,
};
const make = (overrides: Partial<DelivererOptions>): Deliverer => {
  const made = createDeliverer({ ...options, ...overrides });
  others.push(made);
  return made;
};
const another = async (...args: Parameters<typeof startReceiver>): Promise<Receiver> => {
  const made = await startReceiver(...args);
  others.push(made);
  return made;
};

beforeEach(async () => {
  receiver = await startReceiver();
  deliverer = createDeliverer(options);
});
afterEach(async () => {
  await deliverer.close();
  for (const one of others.splice(0).reverse()) await one.close();
  await receiver.waitForNoSockets();
  await receiver.close();
});

describe('a successful attempt', () => {
  it('sends the documented request, and its signature verifies with the official library', async () => {
    receiver.answer({ status: 202, headers: { 'x-a': '1', 'set-cookie': ['a', 'b'] }, body: 'thanks' });
    const endpoint = anEndpoint(`${receiver.url}/hook?a=b`, { headers: { 'X-Team': 'blue' } });
    const outcome = await attempt(deliverer, endpoint);

    const [request] = receiver.requests;
    expect(request).toMatchObject({ method: 'POST', path: '/hook?a=b' });
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Posthorn/test',
      'posthorn-event-type': 'order.created',
      'posthorn-attempt': '1',
      'posthorn-delivery': expect.stringMatching(/^dlv_/),
      'x-team': 'blue',
    });
    expect(request?.headers).not.toHaveProperty('posthorn-retry-reason');
    expect(request?.body).toEqual(buildBody(endpoint, anEvent(), options.publicUrl));
    expect(request?.json().id).toBe(request?.headers['webhook-id']);
    new Webhook(TEST_SECRET).verify(request!.body, request!.headers);

    expect(outcome).toMatchObject({
      statusCode: 202,
      error: null,
      url: `${receiver.url}/hook?a=b`,
      responseTruncated: false,
      retryAfterMs: null,
    });
    expect(outcome.responseBody?.toString()).toBe('thanks');
    expect(outcome.responseHeaders).toMatchObject({ 'x-a': '1', 'set-cookie': 'a, b' });
    expect(outcome.requestHeaders['webhook-signature']).toBe(request?.headers['webhook-signature']);
    expect(Math.abs(outcome.startedAt - Date.now())).toBeLessThan(5000);
  });

  it('SIG-2 has the headers of the hex profile', async () => {
    const event = anEvent({ idempotencyKey: 'key-1' });
    await attempt(deliverer, anEndpoint(receiver.url, { signature: 'hex' }), { event });
    expect(receiver.requests[0]?.headers).toMatchObject({
      'x-webhook-signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
      'x-webhook-id': expect.stringMatching(/^evt_/),
      'x-webhook-delivery': expect.stringMatching(/^dlv_/),
      'x-webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'x-webhook-event': 'order.created',
      'x-idempotency-key': 'key-1',
    });
  });

  it('SIG-2 has the headers of the github profile', async () => {
    await attempt(deliverer, anEndpoint(receiver.url, { signature: 'github' }));
    expect(receiver.requests[0]?.headers).toMatchObject({
      'x-hub-signature-256': expect.stringMatching(/^sha256=/),
      'x-github-event': 'order.created',
    });
  });

  it('works over TLS', async () => {
    const secure = await another({ tls: certificates.valid, name: 'localhost' });
    const outcome = await attempt(deliverer, anEndpoint(secure.url));
    expect(outcome.error).toBeNull();
    expect(outcome.timing.tlsMs).toBeGreaterThan(0);
  });

  it('keeps credentials out of the attempt log', async () => {
    const endpoint = anEndpoint(receiver.url, { headers: { Authorization: 'Bearer secret' } });
    const outcome = await attempt(deliverer, endpoint);
    expect(receiver.requests[0]?.headers.authorization).toBe('Bearer secret');
    expect(JSON.stringify(outcome)).not.toContain('secret');
  });
});

describe('DLV-2 the deadline', () => {
  it('is the endpoint’s, or a shorter one', async () => {
    const endpoint = anEndpoint(receiver.url, { timeoutMs: 1500 });
    // Open connections first: on a busy machine opening one may take as long as the shorter deadline.
    await Promise.all(Array.from({ length: 3 }, () => attempt(deliverer, endpoint)));
    receiver.hang();
    const [own, shorter, longer] = await Promise.all([
      attempt(deliverer, endpoint),
      attempt(deliverer, endpoint, { timeoutMs: 100 }),
      attempt(deliverer, endpoint, { timeoutMs: 15_000 }),
    ]);
    for (const outcome of [own, shorter, longer]) expect(outcome.error?.class).toBe('timeout');
    expect(shorter.durationMs).toBeLessThan(1490);
    for (const outcome of [own, longer]) {
      expect(outcome.durationMs).toBeGreaterThanOrEqual(1498);
      expect(outcome.durationMs).toBeLessThan(10_000);
    }
  });

  it('accepts an answer that arrived in time, even if the event loop stalls', async () => {
    const endpoint = anEndpoint(receiver.url, { timeoutMs: 500 });
    // From another process, so that the answer can arrive while this one is blocked.
    const answering = fork(new URL('../../test/support/answering-process.ts', import.meta.url));
    others.push({ close: async () => void answering.kill() });
    const [port] = (await once(answering, 'message')) as [number];
    const outcome = attempt(deliverer, { ...endpoint, url: `http://127.0.0.1:${port}/` });
    await once(answering, 'message');
    const until = performance.now() + 700;
    while (performance.now() < until);
    expect((await outcome).error).toBeNull();
  });
});

describe('statuses', () => {
  it.each([
    [200, null],
    [204, null],
    [299, null],
    [304, 'http_3xx'],
    [400, 'http_4xx'],
    [404, 'http_4xx'],
    [408, 'http_408'],
    [410, 'http_410'],
    [425, 'http_4xx'],
    [429, 'http_429'],
    [500, 'http_5xx'],
    [503, 'http_5xx'],
  ] as const)('%i: %s', async (status, errorClass) => {
    receiver.answer({ status });
    const outcome = await attempt(deliverer, anEndpoint(receiver.url));
    expect(outcome.statusCode).toBe(status);
    expect(outcome.error?.class ?? null).toBe(errorClass);
  });

  it.each([
    [429, 7000],
    [503, 7000],
    [500, null],
    [200, null],
  ])('RTY-4 Retry-After of a %i', async (status, retryAfterMs) => {
    receiver.answer({ status, headers: { 'retry-after': '7' } });
    expect((await attempt(deliverer, anEndpoint(receiver.url))).retryAfterMs).toBe(retryAfterMs);
  });
});

describe('DLV-4 connections', () => {
  it('are reused', async () => {
    const endpoint = anEndpoint(receiver.url);
    const first = await attempt(deliverer, endpoint);
    const second = await attempt(deliverer, endpoint);
    expect(receiver.connections).toBe(1);
    expect(first.timing.connectMs).toBeGreaterThan(0);
    expect(second.timing).toMatchObject({ dnsMs: null, connectMs: null, tlsMs: null });
    expect(second.timing.firstByteMs).toBeGreaterThan(0);
  });

  it('are opened for each attempt in flight, and stay open', async () => {
    const endpoint = anEndpoint(receiver.url);
    for (let round = 0; round < 3; round += 1)
      await Promise.all(Array.from({ length: 5 }, () => attempt(deliverer, endpoint)));
    expect(receiver.requests).toHaveLength(15);
    expect(receiver.connections).toBe(5);
  });

  it('are closed when they have been idle', async () => {
    const brief = make({ keepAliveMs: 50 });
    await Promise.all(Array.from({ length: 3 }, () => attempt(brief, anEndpoint(receiver.url))));
    expect(brief.stats()).toEqual({ inFlight: 0, idleSockets: 3, origins: 1 });
    await receiver.waitForNoSockets();
    // Origins without connections are forgotten.
    await expect.poll(() => brief.stats()).toEqual({ inFlight: 0, idleSockets: 0, origins: 0 });
    expect((await attempt(brief, anEndpoint(receiver.url))).error).toBeNull();
  });

  it('that are idle are limited for all origins together, and the longest idle closes first', async () => {
    const few = make({ maxIdleSockets: 2 });
    const receivers = [receiver, await another(), await another(), await another()];
    for (const one of receivers) await attempt(few, anEndpoint(one.url));
    await receivers[0]?.waitForNoSockets();
    await receivers[1]?.waitForNoSockets();
    expect(receivers.map((one) => one.openSockets())).toEqual([0, 0, 1, 1]);
  });

  it('that the receiver closes after each answer are opened again', async () => {
    receiver.answer({ headers: { connection: 'close' } });
    const endpoint = anEndpoint(receiver.url);
    for (let i = 0; i < 5; i += 1) expect((await attempt(deliverer, endpoint)).error).toBeNull();
    expect(receiver.connections).toBe(5);
  });

  it('that the receiver had already closed do not count as an attempt', async () => {
    const endpoint = anEndpoint(receiver.url);
    await attempt(deliverer, endpoint);
    // The connection breaks during the second request, as if the receiver had closed it at the same moment.
    receiver.answer((request, wire) => (request.connection === 0 ? reset(request, wire) : { status: 200 }));
    const outcome = await attempt(deliverer, endpoint);
    expect(outcome.error).toBeNull();
    expect(receiver.connections).toBe(2);
    expect(receiver.requests).toHaveLength(3);
  });

  it('that break repeatedly fail the attempt', async () => {
    const endpoint = anEndpoint(receiver.url);
    await attempt(deliverer, endpoint);
    receiver.answer(rawThenClose(''));
    expect((await attempt(deliverer, endpoint)).error?.class).toBe('connection_reset');
    expect(receiver.requests).toHaveLength(3);
  });

  it('never give a late answer of one attempt to a later attempt', async () => {
    const endpoint = anEndpoint(receiver.url);
    receiver.answer({ delayMs: 200, body: 'late' });
    expect((await attempt(deliverer, endpoint, { timeoutMs: 100 })).error?.class).toBe('timeout');
    receiver.answer({ status: 201, body: 'mine' });
    const outcome = await attempt(deliverer, endpoint);
    expect(outcome.statusCode).toBe(201);
    expect(outcome.responseBody?.toString()).toBe('mine');
  });
});

describe('the outcome is reported exactly once', () => {
  const collect = (
    count: number,
  ): { outcomes: AttemptOutcome[]; done: (outcome: AttemptOutcome) => void } => {
    const outcomes: AttemptOutcome[] = [];
    return { outcomes, done: (outcome) => outcomes.push(outcome) <= count };
  };
  const request = { event: anEvent(), deliveryId: anEvent().id, number: 1, retryReason: null };

  it('and never before send() returns', async () => {
    let returned = false;
    for (const url of ['https://10.0.0.1/', 'not a url', receiver.url]) {
      returned = false;
      const outcome = new Promise<boolean>((resolve) => {
        deliverer.send({ endpoint: anEndpoint(url), ...request }, () => resolve(returned));
      });
      returned = true;
      expect(await outcome).toBe(true);
    }
  });

  it('also if the deliverer is closed meanwhile', async () => {
    receiver.hang();
    const { outcomes, done } = collect(3);
    const endpoint = anEndpoint(receiver.url, { timeoutMs: 600 });
    for (let i = 0; i < 3; i += 1) deliverer.send({ endpoint, ...request }, done);
    await receiver.waitFor(3);
    await deliverer.close();
    await receiver.waitForNoSockets();
    expect(outcomes.map((outcome) => outcome.error?.class)).toEqual(['internal', 'internal', 'internal']);
    // Wait past their deadline.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(outcomes).toHaveLength(3);
  });

  it('also if it is closed while attempts still connect', async () => {
    const { outcomes, done } = collect(1);
    const stuck = make({ lookup: () => {} });
    stuck.send({ endpoint: anEndpoint('https://never.example/'), ...request }, done);
    await stuck.close();
    expect(outcomes).toHaveLength(1);
  });

  it('also after it was closed, and it can be closed twice', async () => {
    await deliverer.close();
    await deliverer.close();
    expect((await attempt(deliverer, anEndpoint(receiver.url))).error?.class).toBe('internal');
    expect(receiver.connections).toBe(0);
  });

  it('also for an endpoint whose URL or secret is invalid', async () => {
    const cases = [
      ['egress_forbidden', anEndpoint('nonsense')],
      ['egress_forbidden', anEndpoint('https://169.254.169.254/')],
      ['internal', anEndpoint(receiver.url, { secrets: [] })],
      ['internal', anEndpoint(receiver.url, { signature: 'standard-ed25519' })],
    ] as const;
    for (const [errorClass, endpoint] of cases)
      expect((await attempt(deliverer, endpoint)).error?.class).toBe(errorClass);
    expect(receiver.connections).toBe(0);
  });

  it('and a callback that throws does not affect the others', async () => {
    const thrown: unknown[] = [];
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => thrown.push(error));
    const endpoint = anEndpoint('https://10.0.0.1/');
    deliverer.send({ endpoint, ...request }, () => {
      throw new Error('caller’s fault');
    });
    expect((await attempt(deliverer, anEndpoint(receiver.url))).error).toBeNull();
    for (const listener of listeners) process.on('uncaughtException', listener);
    expect(thrown).toHaveLength(1);
  });
});

it('EGR-2 the egress policy is checked at each attempt, not only when an endpoint is created', async () => {
  const strict = make({ egress: STRICT_EGRESS });
  const outcome = await attempt(strict, anEndpoint(receiver.url));
  expect(outcome.error).toEqual({ class: 'egress_forbidden', message: 'The destination is not allowed.' });
  expect(receiver.connections).toBe(0);
});

it('DSP-2: a request is not sent if the lease ends before the connection is open', async () => {
  const endpoint = anEndpoint(receiver.url);
  const send = (maySend: () => boolean): Promise<AttemptOutcome> =>
    new Promise((resolve) => {
      const deliveryId = deliveryIdOf(anEvent().id, 1);
      deliverer.send(
        { endpoint, event: anEvent(), deliveryId, number: 1, retryReason: null, maySend },
        resolve,
      );
    });
  expect(await send(() => false)).toMatchObject({ withdrawn: true, statusCode: null });
  expect(receiver.requests).toHaveLength(0);
  const allowed = await send(() => true);
  expect(allowed).toMatchObject({ statusCode: 200 });
  expect(allowed.withdrawn).toBeUndefined();
  // The same on an open connection.
  expect(await send(() => false)).toMatchObject({ withdrawn: true });
  expect(receiver.requests).toHaveLength(1);
});
