import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { redirect } from '../../test/support/behaviours.ts';
import { type Behaviour, type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { systemClock } from '../domain/clock.ts';
import { createChallenger } from './challenge.ts';
import { createDeliverer, STRICT_EGRESS } from './index.ts';

const INSIDE = '127.0.0.2';
const deliverer = createDeliverer({
  egress: { ...STRICT_EGRESS, allow: ['127.0.0.1/32'], requireHttps: false },
  userAgent: 'Posthorn/test',
  publicUrl: 'https://hooks.posthorn.test:8443/base',
  // Resolves to an internal address: rejected when connecting, not when the URL is checked.
  lookup: (_host, done) => {
    done(null, [INSIDE]);
    return () => {};
  },
});
const challenger = createChallenger({
  deliverer,
  clock: systemClock,
  timeoutMs: 1000,
  publicUrl: 'https://hooks.posthorn.test:8443/base',
});

let receiver: Receiver;
let inside: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  inside = await startReceiver({ host: INSIDE, port: receiver.port });
});
afterEach(() => {
  receiver.release();
  (receiver.requests as unknown[]).length = 0;
});
afterAll(async () => {
  await deliverer.close();
  await Promise.all([receiver.close(), inside.close()]);
});

const token = (request: Parameters<Behaviour>[0]): string => request.json().data.challenge;

describe('HLT-5: echo', () => {
  it.each<[string, Behaviour, string | null]>([
    ['the token', (request) => ({ body: token(request) }), null],
    ['the token on a line', (request) => ({ status: 201, body: `${token(request)}\r\n` }), null],
    ['the token in JSON', (request) => ({ body: `{ "challenge": "${token(request)}" }` }), null],
    ['nothing', () => ({}), 'The receiver answered 200 with an empty body instead of the token.'],
    [
      'everything',
      (request) => ({ body: request.body }),
      'The receiver answered 200 with something other than the token.',
    ],
    ['null', () => ({ body: 'null' }), 'The receiver answered 200 with something other than the token.'],
    [
      'the token, but a failure',
      (request) => ({ status: 500, body: token(request) }),
      'The receiver failed (500).',
    ],
    ['a redirect', () => redirect('/elsewhere'), 'The receiver redirects (307).'],
  ])('answered with %s', async (_, answer, expected) => {
    receiver.answer(answer);
    const endpoint = anEndpoint(`${receiver.url}/hooks`, { payload: 'thin', followRedirects: 3 });
    expect(await challenger(endpoint, 'echo')).toBe(expected);
    expect(receiver.requests).toHaveLength(1);
    const [request] = receiver.requests;
    expect(request!.headers).toMatchObject({
      'posthorn-event-type': 'posthorn.challenge',
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
    expect(token(request!)).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it('uses a new token each time', async () => {
    receiver.answer((request) => ({ body: token(request) }));
    for (let n = 0; n < 2; n += 1) expect(await challenger(anEndpoint(receiver.url), 'echo')).toBeNull();
    const [one, two] = receiver.requests;
    expect(token(one!)).not.toBe(token(two!));
  });
});

describe('HLT-5: the CloudEvents handshake', () => {
  it.each<[string, Behaviour, string | null]>([
    ['its name', () => ({ headers: { 'WebHook-Allowed-Origin': 'Hooks.posthorn.test' } }), null],
    [
      'any',
      () => ({ status: 204, headers: { 'webhook-allowed-origin': '*', 'webhook-allowed-rate': '1' } }),
      null,
    ],
    ['none', () => ({}), 'The receiver answered 200 without WebHook-Allowed-Origin.'],
    [
      'another',
      () => ({ headers: { 'webhook-allowed-origin': 'other.test' } }),
      'The receiver answered 200 and allows another origin than hooks.posthorn.test.',
    ],
    [
      'a refusal',
      () => ({ status: 405, headers: { 'webhook-allowed-origin': '*' } }),
      'The receiver rejected the request (405).',
    ],
  ])('answered with %s', async (_, answer, expected) => {
    receiver.answer(answer);
    const endpoint = anEndpoint(`${receiver.url}/hooks?a=b`, { headers: { 'x-team': 'blue' } });
    expect(await challenger(endpoint, 'cloudevents')).toBe(expected);
    expect(receiver.requests).toHaveLength(1);
    const [request] = receiver.requests;
    expect(request).toMatchObject({ method: 'OPTIONS', path: '/hooks?a=b' });
    expect(request!.headers).toMatchObject({
      'webhook-request-origin': 'hooks.posthorn.test',
      'x-team': 'blue',
      'user-agent': 'Posthorn/test',
    });
    expect(request!.headers).not.toHaveProperty('content-type');
    expect(request!.body).toHaveLength(0);
  });
});

describe.each(['echo', 'cloudevents'] as const)('HLT-5: %s', (challenge) => {
  it('has a short deadline', async () => {
    receiver.hang();
    expect(await challenger(anEndpoint(receiver.url), challenge)).toBe('No answer within the deadline.');
  });

  it('EGR-1: goes through the guard', async () => {
    const byName = anEndpoint(`http://inside.example.com:${receiver.port}/`);
    expect(await challenger(byName, challenge)).toBe('The destination is not allowed.');
    expect(await challenger(anEndpoint(inside.url), challenge)).toBe('The destination is not allowed.');
    expect(inside.connections).toBe(0);
  });
});
