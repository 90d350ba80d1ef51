/** DLV-7: authentication to receivers: basic, bearer, OAuth 2 client credentials, client certificates. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { certificates } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  attemptsOf,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  type TestEndpoint,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { Behaviour, Receiver } from '../support/receiver.ts';

const posthorn = usePosthorn({
  env: {
    POSTHORN_LOG_LEVEL: 'trace',
    NODE_EXTRA_CA_CERTS: fileURLToPath(new URL('../support/certificates/authority.crt', import.meta.url)),
  },
});

const { clientOne, clientTwo, clientExpired, clientAuthority, authority, valid } = certificates;
const secure = (): Promise<Receiver> => newReceiver({ tls: valid, clientAuthority });
const asking = { tls: valid, clientAuthority, withoutCertificate: 'accept' } as const;
const as = (pair: { cert: string; key: string }) => ({ ...pair, ca: authority });

const basic = { type: 'basic', username: 'posthorn', password: 'hunter2' };
const retry = { schedule: [0, 0.1, 0.1, 0.1, 0.1, 0.1], jitter: 'none' };
const oauth = (tokens: Receiver) => ({
  type: 'oauth2',
  token_url: `${tokens.url}/token`,
  client_id: 'posthorn',
  client_secret: 'swordfish',
});
/** A token endpoint whose tokens are numbered. */
const newTokens = async (extras: object = { expires_in: 3600 }): Promise<Receiver> => {
  const tokens = await newReceiver();
  tokens.answer(({ index }) => ({
    body: JSON.stringify({ access_token: `sesame-${index + 1}`, token_type: 'Bearer', ...extras }),
  }));
  return tokens;
};

const read = async ({ id }: { id: string }) =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body;
const patch = ({ id }: { id: string }, change: object): Promise<Answer> =>
  posthorn.api('PATCH', `/v1/endpoints/${id}`, change);
/** Publishes an event for the tenant and returns its delivery when it is delivered. */
async function deliver({ tenant }: { tenant: string }) {
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  return (await untilDeliveries(posthorn, event.id, 'delivered'))[0]!;
}
const sent = (receiver: Receiver) => receiver.requests.map(({ headers }) => headers.authorization);

describe('DLV-7: credentials', () => {
  test('arrive at the receiver and appear nowhere else', async () => {
    const [plain, tls, tokens] = await Promise.all([newReceiver(), secure(), newTokens()]);
    const cases = [
      { url: plain.url, auth: basic },
      { url: plain.url, auth: { type: 'bearer', token: 'open-sesame' } },
      { url: plain.url, auth: { ...oauth(tokens), scope: 'hooks' } },
      { url: tls.url, auth: basic, tls: as(clientOne) },
    ];
    const secrets = [
      'hunter2',
      Buffer.from('posthorn:hunter2').toString('base64'),
      'open-sesame',
      'swordfish',
      'sesame-1',
      clientOne.key.split('\n')[1]!,
    ];
    const answers: string[] = [];
    const made: TestEndpoint[] = [];
    for (const settings of cases) {
      const answer = await posthorn.api('POST', '/v1/endpoints', { ...settings, tenant: newTenant() });
      made.push((await expectStatus(answer, 201)).body);
      answers.push(answer.text);
    }
    for (const endpoint of made) {
      const { id } = await deliver(endpoint);
      const [attempt] = await attemptsOf(posthorn, id);
      expect(attempt!.request_headers.authorization).toBe('[redacted]');
      answers.push(JSON.stringify(attempt));
      answers.push((await posthorn.api('GET', `/v1/deliveries/${id}/attempts/1/request`)).text);
    }
    const asSent = `Basic ${Buffer.from('posthorn:hunter2').toString('base64')}`;
    expect(sent(plain)).toEqual([asSent, 'Bearer open-sesame', 'Bearer sesame-1']);
    expect(tls.requests[0]).toMatchObject({ clientName: 'client-one', headers: { authorization: asSent } });

    expect(await Promise.all(made.map(async (endpoint) => (await read(endpoint)).auth))).toEqual([
      { type: 'basic', username: 'posthorn', password: '[redacted]' },
      { type: 'bearer', token: '[redacted]' },
      { ...oauth(tokens), client_secret: '[redacted]', scope: 'hooks' },
      { type: 'basic', username: 'posthorn', password: '[redacted]' },
    ]);
    expect((await read(made[3]!)).tls).toEqual({ cert: clientOne.cert, key: '[redacted]', ca: authority });

    await expectStatus(patch(made[0]!, { auth: { type: 'bearer', token: 'open-sesame' } }), 200);
    const { text: audit, body } = await posthorn.api('GET', `/v1/audit?tenant=${made[0]!.tenant}`);
    expect(body.data[0].changes).toEqual([{ field: 'auth' }]);
    for (const path of ['/v1/endpoints', '/v1/audit', '/v1/deliveries'])
      answers.push((await posthorn.api('GET', `${path}?limit=250`)).text);
    const rows = await posthorn.database.query(
      'select to_jsonb(e) as r from posthorn.endpoints e union all select to_jsonb(a) from posthorn.attempts a union all select to_jsonb(l) from posthorn.audit_log l',
    );
    const everything = [posthorn.output(), audit, JSON.stringify(rows), ...answers].join('\n');
    expect(rows.length).toBeGreaterThan(8);
    for (const secret of secrets) expect(everything.includes(secret), secret).toBe(false);
  });

  test('are replaced as a whole, kept if absent, and removed by null', async () => {
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant: newTenant(),
      auth: basic,
      max_in_flight: 1,
    });
    await expectStatus(patch(endpoint, { description: 'other', headers: { 'x-a': 'b' } }), 200);
    await deliver(endpoint);
    // A caller can send back what it read: `[redacted]` keeps the stored secret.
    const { auth } = await read(endpoint);
    await expectStatus(patch(endpoint, { auth }), 200);
    await expectStatus(patch(endpoint, { auth: { ...auth, username: 'else' } }), 200);
    await expectStatus(patch(endpoint, { auth }), 200);
    const refused = await expectStatus(
      patch(endpoint, { auth: { type: 'bearer', token: '[redacted]' } }),
      422,
    );
    expect(refused.body.errors).toEqual([
      {
        path: 'auth.token',
        message: 'is redacted: send the value itself, or leave "auth" out to keep what is stored',
      },
    ]);
    await deliver(endpoint);
    await expectStatus(patch(endpoint, { auth: { type: 'bearer', token: 'new' } }), 200);
    await deliver(endpoint);
    await expectStatus(patch(endpoint, { headers: { authorization: 'Custom x' } }), 422);
    await expectStatus(patch(endpoint, { auth: null, headers: { Authorization: 'Custom x' } }), 200);
    await deliver(endpoint);
    const both = await expectStatus(patch(endpoint, { auth: basic }), 422);
    expect(both.body.errors).toMatchObject([{ path: 'headers.Authorization' }]);
    await expectStatus(patch(endpoint, { headers: null }), 200);
    expect((await read(endpoint)).auth).toBeNull();
    await deliver(endpoint);
    const asSent = `Basic ${Buffer.from('posthorn:hunter2').toString('base64')}`;
    expect(sent(receiver)).toEqual([asSent, asSent, 'Bearer new', 'Custom x', undefined]);
  });

  const [certOne, keyOne] = [clientOne.cert, clientOne.key];
  test.each<[string, object, string[]]>([
    ['no password', { auth: { type: 'basic', username: 'a' } }, ['auth.password']],
    ['too much', { auth: { ...basic, token: 'x' } }, ['auth.token']],
    ['an unknown type', { auth: { type: 'digest' } }, ['auth.type']],
    ['no type', { auth: {} }, ['auth.type']],
    ['a colon in the name', { auth: { ...basic, username: 'a:b' } }, ['auth.username']],
    ['a broken line', { auth: { type: 'bearer', token: 'a\r\nx: y' } }, ['auth.token']],
    [
      'a token_url inside',
      {
        auth: {
          type: 'oauth2',
          token_url: 'https://169.254.169.254/t',
          client_id: 'a',
          client_secret: 'b',
        },
      },
      ['auth.token_url'],
    ],
    [
      'a token_url without https',
      { auth: { type: 'oauth2', token_url: 'http://example.com/t', client_id: 'a', client_secret: 'b' } },
      ['auth.token_url'],
    ],
    ['no certificate', { tls: { cert: 'x', key: keyOne } }, ['tls.cert']],
    ['no key', { tls: { cert: certOne, key: 'x' } }, ['tls.key']],
    ['a redacted key', { tls: { cert: certOne, key: '[redacted]' } }, ['tls.key']],
    ['another’s key', { tls: { cert: certOne, key: clientTwo.key } }, ['tls.key']],
    ['a key among certificates', { tls: { cert: `${certOne}\n${keyOne}`, key: keyOne } }, ['tls.cert']],
    ['an expired certificate', { tls: clientExpired }, ['tls.cert']],
    ['a key of more than 4096 bits', { tls: certificates.clientLong }, ['tls.key']],
    ['no authority', { tls: { cert: certOne, key: keyOne, ca: 'x' } }, ['tls.ca']],
    ['a certificate for http', { url: 'http://127.0.0.1:9/', tls: clientOne }, ['tls']],
  ])('%s is refused, and the error names the field', async (_what, settings, paths) => {
    const answer = await posthorn.api('POST', '/v1/endpoints', { url: 'https://example.com/', ...settings });
    expect(answer.status, answer.text).toBe(422);
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual(paths);
    expect(answer.text).not.toContain('PRIVATE');
  });

  test('that cannot be decrypted stop only their own endpoint', async () => {
    const receiver = await newReceiver();
    const [bad, good] = [
      await createEndpoint(posthorn, { url: `${receiver.url}/bad`, tenant: newTenant(), auth: basic }),
      await createEndpoint(posthorn, { url: `${receiver.url}/good`, tenant: newTenant(), auth: basic }),
    ];
    const configs = await posthorn.database.query<{ config: object }>(
      'select config from posthorn.endpoints where tenant = $1',
      [bad.tenant],
    );
    let timeoutMs = 5_000;
    const write = async (config: object) => {
      const text = 'update posthorn.endpoints set config = $1 where tenant = $2';
      await posthorn.database.query(text, [JSON.stringify(config), bad.tenant]);
      // SQL does not invalidate the cache of endpoints. A change through the API does.
      timeoutMs += 1;
      await expectStatus(patch(bad, { timeout_ms: timeoutMs }), 200);
    };
    const damaged = { key_id: 'nobodys', ciphertext: 'AAAA' };
    await write({ ...configs[0]!.config, sealed_settings: { auth: damaged } });
    const waiting = await publish(posthorn, { tenant: bad.tenant, type: 'a.b', data: 1 });
    await deliver(good);
    await write(configs[0]!.config);
    await untilDeliveries(posthorn, waiting.id, 'delivered');
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/good', '/bad']);
    const asSent = `Basic ${Buffer.from('posthorn:hunter2').toString('base64')}`;
    expect(sent(receiver)).toEqual([asSent, asSent]);
  });

  test('are sent with the challenge too', async () => {
    const [receiver, tls, tokens] = await Promise.all([newReceiver(), secure(), newTokens()]);
    const echo: Behaviour = (request) => ({ body: request.json().data?.challenge });
    receiver.answer(echo);
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      challenge: 'echo',
      auth: oauth(tokens),
    });
    expect(sent(receiver)).toEqual(['Bearer sesame-1']);
    // The challenge uses the stored credentials.
    await expectStatus(patch(endpoint, { url: `${receiver.url}/moved` }), 200);
    expect(sent(receiver)).toEqual(['Bearer sesame-1', 'Bearer sesame-1']);

    tls.answer({ headers: { 'webhook-allowed-origin': '*' } });
    const secured = { url: tls.url, tenant, challenge: 'cloudevents', auth: basic, tls: as(clientOne) };
    await createEndpoint(posthorn, secured);
    expect(tls.requests[0]).toMatchObject({
      method: 'OPTIONS',
      clientName: 'client-one',
      headers: { authorization: expect.stringMatching(/^Basic /) },
    });
  });
});

describe('DLV-7: OAuth 2', () => {
  test('a token is reused until the receiver refuses it, then replaced, and nothing is lost', async () => {
    const [receiver, tokens] = await Promise.all([newReceiver(), newTokens()]);
    const url = receiver.url;
    const endpoint = await createEndpoint(posthorn, { url, tenant: newTenant(), auth: oauth(tokens), retry });
    await deliver(endpoint);
    await deliver(endpoint);
    expect(tokens.requests).toHaveLength(1);
    receiver.answer(({ headers }) => ({ status: headers.authorization === 'Bearer sesame-1' ? 401 : 200 }));
    const { id } = await deliver(endpoint);
    expect(sent(receiver).slice(2)).toEqual(['Bearer sesame-1', 'Bearer sesame-2']);
    expect(await attemptsOf(posthorn, id)).toMatchObject([
      { number: 1, status_code: 401, error: { class: 'oauth_rejected' } },
      { number: 2, status_code: 200, error: null },
    ]);
    // If the receiver refuses a new token too, the 401 is an ordinary answer, which is permanent by default.
    receiver.answer({ status: 401 });
    const event = await publish(posthorn, { tenant: endpoint.tenant, type: 'a.b', data: 1 });
    const [dead] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(dead).toMatchObject({ attempts: 2, reason: 'rejected', last_error: 'http_4xx' });
  });

  test('a failing token endpoint has its own error class and is retried', async () => {
    const [receiver, tokens] = await Promise.all([newReceiver(), newReceiver()]);
    tokens.answer(({ index }) =>
      index < 2
        ? { status: 401, body: '{"error":"invalid_client"}' }
        : { body: '{"access_token":"x","expires_in":1}' },
    );
    const url = receiver.url;
    const endpoint = await createEndpoint(posthorn, { url, tenant: newTenant(), auth: oauth(tokens), retry });
    const { id } = await deliver(endpoint);
    const attempts = await attemptsOf(posthorn, id);
    expect(attempts.map(({ error }) => error?.class)).toEqual(['oauth_failed', 'oauth_failed', undefined]);
    expect(attempts[0]).toMatchObject({
      status_code: null,
      response_body: null,
      error: {
        message: 'The token endpoint gave no access token (401 invalid_client).',
        hint: expect.stringContaining('client_secret'),
      },
    });
    expect(receiver.requests).toHaveLength(1);
    // The token expires after a second.
    await eventually('another token is fetched', async () => {
      await deliver(endpoint);
      return tokens.requests.length > 3;
    });
  });

  test('a token endpoint that hangs delays only its own endpoint', async () => {
    const [receiver, tokens] = await Promise.all([newReceiver(), newTokens()]);
    const tenant = newTenant();
    tokens.hang();
    const stuck = { url: `${receiver.url}/stuck`, tenant, auth: oauth(tokens), max_in_flight: 3 };
    await createEndpoint(posthorn, { ...stuck, events: ['stuck'] });
    await createEndpoint(posthorn, { url: `${receiver.url}/well`, tenant, events: ['well'] });
    const waiting = [];
    for (let n = 0; n < 5; n += 1) waiting.push(await publish(posthorn, { tenant, type: 'stuck', data: n }));
    await tokens.waitFor(1);
    for (let n = 0; n < 3; n += 1) {
      const event = await publish(posthorn, { tenant, type: 'well', data: n });
      await untilDeliveries(posthorn, event.id, 'delivered');
    }
    expect(receiver.requests.every(({ path }) => path === '/well')).toBe(true);
    expect(tokens.requests).toHaveLength(1);
    tokens.release();
    for (const { id } of waiting) await untilDeliveries(posthorn, id, 'delivered');
    expect(tokens.requests).toHaveLength(1);
  });

  test('the circuit breaker counts failures of the token endpoint', async () => {
    const [receiver, tokens] = await Promise.all([newReceiver(), newReceiver()]);
    tokens.answer({ status: 500 });
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant: newTenant(),
      auth: oauth(tokens),
      retry,
      breaker: { consecutive: 3 },
    });
    await publish(posthorn, { tenant: endpoint.tenant, type: 'a.b', data: 1 });
    await eventually('the circuit is open', async () => (await read(endpoint)).health.circuit === 'open');
    expect(tokens.requests).toHaveLength(3);
  });
});

describe('DLV-7: client certificates', () => {
  test('a receiver that requires one gets it, and without it nothing is delivered', async () => {
    const receiver = await secure();
    const tenant = newTenant();
    const with1 = await createEndpoint(posthorn, { url: receiver.url, tenant, tls: as(clientOne) });
    await deliver(with1);
    await expectStatus(patch(with1, { tls: as(clientTwo) }), 200);
    await deliver(with1);
    expect(receiver.requests.map(({ clientName }) => clientName)).toEqual(['client-one', 'client-two']);

    await expectStatus(patch(with1, { tls: null, retry: { schedule: [0] } }), 200);
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [dead] = await untilDeliveries(posthorn, event.id, 'dead');
    // With TLS 1.3 the client notices the refusal when it writes, and the connection may end before the alert arrives.
    expect(['tls_failed', 'connection_reset']).toContain(dead!.last_error);
    expect(receiver.requests).toHaveLength(2);
  });

  test('tenants with the same receiver never share a connection', async () => {
    const receiver = await newReceiver(asking);
    const url = receiver.url;
    const one = await createEndpoint(posthorn, { url, tenant: newTenant(), tls: as(clientOne) });
    const two = await createEndpoint(posthorn, { url, tenant: newTenant(), tls: as(clientTwo) });
    const alike = await createEndpoint(posthorn, { url, tenant: newTenant(), tls: as(clientOne) });
    for (const endpoint of [one, two, alike, one, two, alike]) await deliver(endpoint);
    expect(receiver.requests.map(({ clientName }) => clientName)).toEqual([
      'client-one',
      'client-two',
      'client-one',
      'client-one',
      'client-two',
      'client-one',
    ]);
    const on = receiver.requests.map(({ connection }) => connection);
    expect(new Set(on.slice(0, 3)).size).toBe(3);
    expect(new Set([on[0], on[3]]).has(on[2]!) || new Set([on[0], on[3]]).has(on[5]!)).toBe(false);
  });
});
