/** DLV-7: access tokens of OAuth 2 clients, with real token endpoints and receivers. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { anEndpoint, anEvent, attempt } from '../../test/support/attempts.ts';
import { redirect } from '../../test/support/behaviours.ts';
import { type Behaviour, type Receiver, type Reply, startReceiver } from '../../test/support/receiver.ts';
import { type Clock, systemClock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { createDeliverer, STRICT_EGRESS } from './index.ts';

/** The real clock, which a test can move forward. */
let aheadMs = 0;
const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };

const INSIDE = '127.0.0.2';
const deliverer = createDeliverer({
  egress: { ...STRICT_EGRESS, allow: ['127.0.0.1/32'], requireHttps: false },
  userAgent: 'Posthorn/test',
  publicUrl: 'https://posthorn.test',
  responseCapBytes: 100,
  clock,
  // Resolves to an internal address: rejected when connecting, not when the URL is checked.
  lookup: (_host, done) => done(null, [INSIDE]),
});

let receiver: Receiver;
let tokens: Receiver;
let inside: Receiver;
const clear = (one: Receiver): void => {
  one.release();
  (one.requests as unknown[]).length = 0;
};
beforeAll(async () => {
  receiver = await startReceiver();
  tokens = await startReceiver();
  inside = await startReceiver({ host: INSIDE, port: tokens.port });
});
afterEach(() => {
  aheadMs = 0;
  receiver.answer({});
  clear(receiver);
  clear(tokens);
});
afterAll(async () => {
  await deliverer.close();
  await Promise.all([receiver.close(), tokens.close(), inside.close()]);
});

const json = (body: unknown, status = 200): Reply => ({ status, body: JSON.stringify(body) });
const granting =
  (extras: object = { token_type: 'Bearer', expires_in: 3600 }): Behaviour =>
  ({ index }) =>
    json({ access_token: `token-${index + 1}`, ...extras });

let endpoints = 0;
/** Each endpoint has its own id and tenant, and therefore its own tokens and limits. */
function anOAuthEndpoint(overrides: Partial<Endpoint> = {}, client: object = {}): Endpoint {
  endpoints += 1;
  return anEndpoint(`${receiver.url}/hook`, {
    id: `01890a5d-ac96-774b-bcce-${String(endpoints).padStart(12, '0')}`,
    tenant: `tenant-${endpoints}`,
    auth: {
      type: 'oauth2',
      tokenUrl: `${tokens.url}/token?tenant=7`,
      clientId: 'posthorn',
      clientSecret: 'hunter2',
      scope: null,
      ...client,
    },
    ...overrides,
  });
}
const sentTokens = () => receiver.requests.map(({ headers }) => headers.authorization);

describe('DLV-7: an access token', () => {
  it('is requested by the client credentials grant, and sent', async () => {
    tokens.answer(granting());
    const endpoint = anOAuthEndpoint({}, { clientId: 'a b:c', clientSecret: 's%é', scope: 'hooks:write a' });
    const outcome = await attempt(deliverer, endpoint);
    expect(outcome).toMatchObject({ statusCode: 200, error: null, url: endpoint.url });
    const [asked] = tokens.requests;
    expect(asked).toMatchObject({
      method: 'POST',
      path: '/token?tenant=7',
      headers: {
        authorization: `Basic ${Buffer.from('a+b%3Ac:s%25%C3%A9').toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'user-agent': 'Posthorn/test',
      },
    });
    expect(asked!.body.toString()).toBe('grant_type=client_credentials&scope=hooks%3Awrite+a');
    expect(sentTokens()).toEqual(['Bearer token-1']);
    expect(outcome.requestHeaders.authorization).toBe('[redacted]');
    expect(JSON.stringify(outcome)).not.toContain('token-1');
  });

  it('can be larger than the cap for stored responses', async () => {
    const long = 'x'.repeat(5000);
    tokens.answer(json({ access_token: long }));
    await attempt(deliverer, anOAuthEndpoint());
    expect(sentTokens()).toEqual([`Bearer ${long}`]);
  });

  it('takes precedence over the headers of the event', async () => {
    tokens.answer(granting());
    const event = anEvent({ headers: { authorization: 'Bearer of-the-event' } });
    await attempt(deliverer, anOAuthEndpoint(), { event });
    expect(sentTokens()).toEqual(['Bearer token-1']);
  });

  it('is cached until shortly before it expires', async () => {
    tokens.answer(granting({ expires_in: '100' }));
    const endpoint = anOAuthEndpoint();
    await attempt(deliverer, endpoint);
    // The same endpoint after an unrelated change.
    await attempt(deliverer, { ...endpoint, timeoutMs: 1500 });
    aheadMs = 79_000;
    await attempt(deliverer, endpoint);
    aheadMs = 81_000;
    await attempt(deliverer, endpoint);
    expect(sentTokens()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-1', 'Bearer token-2']);
  });

  it.each([
    ['not said', {}, 250_000, 290_000],
    ['a year', { expires_in: 31_536_000 }, 3_500_000, 3_600_000],
    ['nonsense', { expires_in: 'soon' }, 250_000, 290_000],
  ])('is cached for a default time if its lifetime is %s', async (_what, said, before, after) => {
    tokens.answer(granting(said));
    const endpoint = anOAuthEndpoint();
    await attempt(deliverer, endpoint);
    aheadMs = before;
    await attempt(deliverer, endpoint);
    aheadMs = after;
    await attempt(deliverer, endpoint);
    expect(sentTokens()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-2']);
  });

  it('is never shared by endpoints, nor reused after a change of settings', async () => {
    tokens.answer(granting());
    const one = anOAuthEndpoint();
    const other = anOAuthEndpoint();
    const changed: Endpoint = { ...one, auth: { ...one.auth!, scope: 'more' } as Endpoint['auth'] };
    for (const endpoint of [one, other, changed, one]) await attempt(deliverer, endpoint);
    expect(sentTokens()).toEqual(['Bearer token-1', 'Bearer token-2', 'Bearer token-3', 'Bearer token-1']);
  });

  it('is requested once, however many attempts wait for it', async () => {
    tokens.answer(granting());
    tokens.hang();
    const endpoint = anOAuthEndpoint();
    const attempts = Array.from({ length: 10 }, () => attempt(deliverer, endpoint));
    await tokens.waitFor(1);
    tokens.release();
    for (const outcome of await Promise.all(attempts)) expect(outcome.error).toBeNull();
    expect(tokens.requests).toHaveLength(1);
    expect(receiver.requests).toHaveLength(10);
  });

  it('is sent to its own origin only', async () => {
    tokens.answer(granting());
    const elsewhere = await startReceiver();
    try {
      elsewhere.answer({ status: 401 });
      receiver.answer(redirect(`${elsewhere.url}/other`, 307));
      const endpoint = anOAuthEndpoint({ followRedirects: 1 });
      await attempt(deliverer, endpoint);
      expect(elsewhere.requests[0]!.headers).not.toHaveProperty('authorization');
      // A 401 of another origin does not invalidate the token.
      receiver.answer({});
      await attempt(deliverer, endpoint);
      expect(tokens.requests).toHaveLength(1);
    } finally {
      await elsewhere.close();
    }
  });
});

describe('DLV-7: a token that the receiver rejects', () => {
  it('is not sent again, and one attempt does not fetch a second one', async () => {
    tokens.answer(granting());
    const endpoint = anOAuthEndpoint();
    await attempt(deliverer, endpoint);
    receiver.answer({ status: 401 });
    const refused = await attempt(deliverer, endpoint);
    expect(refused).toMatchObject({ statusCode: 401, error: { class: 'oauth_rejected' } });
    expect([tokens.requests.length, receiver.requests.length]).toEqual([1, 2]);
    // With a new token the 401 is final.
    const again = await attempt(deliverer, endpoint);
    expect(again).toMatchObject({ statusCode: 401, error: { class: 'http_4xx' } });
    receiver.answer({});
    expect((await attempt(deliverer, endpoint)).error).toBeNull();
    expect(sentTokens()).toEqual(['Bearer token-1', 'Bearer token-1', 'Bearer token-2', 'Bearer token-3']);
  });
});

describe('DLV-7: without a token', () => {
  const failure = (detail: string) => ({
    statusCode: null,
    url: `${receiver.url}/hook`,
    responseHeaders: null,
    responseBody: null,
    error: { class: 'oauth_failed', message: `The token endpoint gave no access token (${detail}).` },
  });
  const fail = async (client: object = {}, endpoint: Partial<Endpoint> = {}): Promise<AttemptOutcome> => {
    const outcome = await attempt(deliverer, anOAuthEndpoint(endpoint, client));
    expect(receiver.requests).toHaveLength(0);
    return outcome;
  };

  it.each<[string, Reply, string]>([
    [
      'refuses',
      json({ error: 'invalid_client', error_description: 'secret hunter2 is wrong' }, 401),
      '401 invalid_client',
    ],
    ['refuses in its own words', json({ error: 'no, hunter2 is wrong' }, 400), '400'],
    ['fails', { status: 503, body: 'down' }, '503'],
    ['redirects', { status: 307, headers: { location: 'http://127.0.0.1/' } }, '307'],
    ['says nothing', {}, '200, not a JSON object'],
    ['says null', json(null), '200, not a JSON object'],
    ['says too much', json({ access_token: 'a', more: 'x'.repeat(70_000) }), '200, not a JSON object'],
    ['gives none', json({ token: 'a' }), '200, no usable access_token'],
    ['gives one that breaks headers', json({ access_token: 'a\r\nb' }), '200, no usable access_token'],
    [
      'gives one of another kind',
      json({ access_token: 'a', token_type: 'mac' }),
      '200, token_type is not Bearer',
    ],
  ])('nothing is sent: the token endpoint %s', async (_what, reply, detail) => {
    tokens.answer(reply);
    const outcome = await fail();
    expect(outcome).toMatchObject(failure(detail));
    expect(JSON.stringify(outcome)).not.toContain('hunter2');
  });

  it('the deliverer requests one again after a failure, with longer and longer pauses', async () => {
    tokens.answer({ status: 500 });
    const endpoint = anOAuthEndpoint();
    const fail = async () =>
      expect((await attempt(deliverer, endpoint)).error).toMatchObject({
        class: 'oauth_failed',
        message: expect.stringContaining('500'),
      });
    for (const pauseMs of [250, 500, 1000, 2000, 4000, 8000]) {
      await fail();
      aheadMs += pauseMs;
    }
    expect(tokens.requests).toHaveLength(6);
    await fail();
    // Now the pause is 16 seconds, and attempts do not wait for it.
    for (let n = 0; n < 20; n += 1) await fail();
    expect(tokens.requests).toHaveLength(7);
    aheadMs += 16_000;
    tokens.answer(granting());
    expect((await attempt(deliverer, endpoint)).error).toBeNull();
  });

  it('a receiver that rejects every token causes about one token request per second', async () => {
    tokens.answer(granting());
    receiver.answer({ status: 401 });
    const endpoint = anOAuthEndpoint();
    const start = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => attempt(deliverer, endpoint)));
    for (let n = 0; n < 10; n += 1) await attempt(deliverer, endpoint, { timeoutMs: 20 });
    const seconds = (performance.now() - start) / 1000;
    expect(tokens.requests.length).toBeLessThanOrEqual(6 + Math.ceil(seconds));
    receiver.answer({});
    aheadMs = 10_000;
    expect((await attempt(deliverer, endpoint)).error).toBeNull();
  });

  it('a host gets at most 20 requests per second for one tenant, beyond the first 100', async () => {
    tokens.answer({ status: 500 });
    const start = performance.now();
    const flood = Array.from({ length: 300 }, () =>
      attempt(deliverer, anOAuthEndpoint({ tenant: 'many', timeoutMs: 20_000 })),
    );
    const other = await attempt(deliverer, anOAuthEndpoint({ tenant: 'other', timeoutMs: 20_000 }));
    expect(other.error?.message).toContain('500');
    const outcomes = await Promise.all(flood);
    const seconds = (performance.now() - start) / 1000;
    expect(tokens.requests.length).toBeLessThanOrEqual(101 + Math.ceil(20 * seconds));
    expect(outcomes.some(({ error }) => error?.message.includes('too many requests'))).toBe(true);
  });

  it('the next attempt requests a token again, and can succeed', async () => {
    tokens.answer({ status: 500 });
    const endpoint = anOAuthEndpoint();
    expect((await attempt(deliverer, endpoint)).error?.class).toBe('oauth_failed');
    tokens.answer(granting());
    expect((await attempt(deliverer, endpoint)).error).toBeNull();
  });

  it('the token endpoint is called through the guard', async () => {
    expect(await fail({ tokenUrl: `http://${INSIDE}:${inside.port}/` })).toMatchObject(
      failure('egress_forbidden'),
    );
    expect(await fail({ tokenUrl: `http://rebound.example:${inside.port}/` })).toMatchObject(
      failure('egress_forbidden'),
    );
    expect(await fail({ tokenUrl: 'http://127.0.0.1:1/' })).toMatchObject(failure('connect_refused'));
    expect(inside.connections).toBe(0);
  });

  it('a token endpoint that hangs delays only its own endpoint', async () => {
    tokens.hang();
    const endpoints = Array.from({ length: 5 }, () => anOAuthEndpoint({ timeoutMs: 300 }));
    const stuck = endpoints.map((endpoint) => attempt(deliverer, endpoint));
    await tokens.waitFor(5);
    expect((await attempt(deliverer, anEndpoint(`${receiver.url}/healthy`))).error).toBeNull();
    for (const outcome of await Promise.all(stuck)) {
      expect(outcome).toMatchObject(failure('timeout'));
      expect(outcome.durationMs).toBeGreaterThanOrEqual(299);
    }
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/healthy']);
  });

  it('an attempt keeps its own deadline while it waits for a token', async () => {
    tokens.hang();
    const endpoint = anOAuthEndpoint({ timeoutMs: 5000 });
    const first = attempt(deliverer, endpoint);
    await tokens.waitFor(1);
    expect(await attempt(deliverer, endpoint, { timeoutMs: 50 })).toMatchObject(failure('timeout'));
    tokens.answer(granting());
    tokens.release();
    expect((await first).error).toBeNull();
    expect(tokens.requests).toHaveLength(1);
  });

  it('closing ends attempts that wait for a token', async () => {
    const closing = createDeliverer({
      egress: { ...STRICT_EGRESS, allow: ['127.0.0.1/32'], requireHttps: false },
      userAgent: 'Posthorn/test',
      publicUrl: 'https://posthorn.test',
    });
    tokens.hang();
    const waiting = attempt(closing, anOAuthEndpoint());
    await tokens.waitFor(1);
    await closing.close();
    expect(await waiting).toMatchObject({ withdrawn: true, error: { class: 'internal' } });
    expect(closing.stats()).toMatchObject({ inFlight: 0, idleSockets: 0 });
  });
});
