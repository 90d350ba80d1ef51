/**
 * The second round of security attacks, as tables. `security-cases.md` lists each of them with its result; the last test
 * compares that list with the titles here.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDeliverer, DEVELOPMENT_EGRESS, type Deliverer } from '../../src/deliver/index.ts';
import { anEndpoint, attempt } from '../support/attempts.ts';
import { rawThenClose, redirect } from '../support/behaviours.ts';
import {
  ADMIN_KEY,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { exchange } from '../support/raw-http.ts';
import { type Behaviour, type Receiver, type Reply, startReceiver } from '../support/receiver.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'true' } });
const titles: string[] = [];
const listed = <T extends readonly [string, ...unknown[]]>(cases: readonly T[]): readonly T[] => {
  titles.push(...cases.map(([title]) => title));
  return cases;
};

/** Two tenants with one object of each kind. The attacker has keys of `acme` only. */
const world = { victim: newTenant(), acme: newTenant(), tenantKey: '', readKey: '' };
const ids: Record<string, string> = {};
let receiver: Receiver;
afterAll(() => receiver.close());
beforeAll(async () => {
  const { victim, acme } = world;
  receiver = await startReceiver();
  ids.endpoint = (await createEndpoint(posthorn, { url: receiver.url, tenant: victim })).id;
  ids.own = (await createEndpoint(posthorn, { url: receiver.url, tenant: acme })).id;
  ids.event = (await publish(posthorn, { tenant: victim, type: 'a.b', data: 1 })).id;
  ids.delivery = (await untilDeliveries(posthorn, ids.event!, 'delivered'))[0]!.id;
  ids.inbox = (await expectStatus(posthorn.api('POST', '/v1/inboxes', { tenant: victim }), 201)).body.token;
  const newKey = async (scope: string) =>
    (await expectStatus(posthorn.api('POST', '/v1/keys', { scope, tenant: acme }), 201)).body;
  const tenantKey = await newKey('tenant');
  world.tenantKey = tenantKey.key;
  ids.key = tenantKey.id;
  world.readKey = (await newKey('read')).key;
});

/** `{endpoint}` in a path or body stands for the id of the victim's endpoint. */
const fill = <T>(value: T): T =>
  value === undefined
    ? value
    : (JSON.parse(
        JSON.stringify(value).replace(
          /\{(\w+)\}/g,
          (all, name: string) => ids[name] ?? world[name as 'victim'] ?? all,
        ),
      ) as T);

describe('invalid keys', () => {
  const cases: [string, Record<string, string>, string?][] = [
    ['K01 the key in the query', {}, `/v1/endpoints?key=${ADMIN_KEY}&api_key=${ADMIN_KEY}`],
    [
      'K02 the key by Basic authentication',
      { authorization: `Basic ${Buffer.from(`${ADMIN_KEY}:`).toString('base64')}` },
    ],
    ['K03 the key in a cookie', { cookie: `authorization=${ADMIN_KEY}; key=${ADMIN_KEY}` }],
    ['K04 the key in X-Api-Key', { 'x-api-key': ADMIN_KEY }],
    ['K05 the key without a scheme', { authorization: ADMIN_KEY }],
    ['K06 the key in other case', { authorization: `Bearer ${ADMIN_KEY.toUpperCase()}` }],
    ['K07 the beginning of the key', { authorization: `Bearer ${ADMIN_KEY.slice(0, -1)}` }],
    ['K08 the key with more behind it', { authorization: `Bearer ${ADMIN_KEY} x` }],
    ['K09 two keys in one header', { authorization: `Bearer x, Bearer ${ADMIN_KEY}` }],
    ['K10 a key of 8 KiB', { authorization: `Bearer ${'a'.repeat(8192)}` }],
    [
      'K11 percent-encoded',
      { authorization: `Bearer ${[...ADMIN_KEY].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')}` },
    ],
    [
      'K12 the hash instead of the key',
      { authorization: 'Bearer e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' },
    ],
    ['K13 Proxy-Authorization', { 'proxy-authorization': `Bearer ${ADMIN_KEY}` }],
    ['K14 an SQL condition as key', { authorization: "Bearer ' or 1=1 --" }],
  ];
  it.each(listed(cases))('%s: 401', async (_title, headers, path = '/v1/endpoints') => {
    const { body } = await expectStatus(posthorn.api('GET', path, undefined, { key: null, headers }), 401);
    expect(JSON.stringify(body)).not.toContain(ADMIN_KEY);
  });

  const [K15] = listed([['K15 a second Authorization header with a valid key']]);
  it(`${K15![0]}: 400 or 401`, async () => {
    const head = `GET /v1/endpoints HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer x\r\n`;
    const { answers } = await exchange(posthorn.url, `${head}authorization: Bearer ${ADMIN_KEY}\r\n\r\n`);
    expect([400, 401]).toContain(answers[0]!.status);
  });
});

describe('requests that the key may not make', () => {
  const override = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE' };
  type Attack = [
    string,
    'tenantKey' | 'readKey',
    string,
    string,
    object | undefined,
    readonly number[],
    Record<string, string>?,
  ];
  const cases: Attack[] = [
    ['A01 a read key deletes', 'readKey', 'DELETE', '/v1/endpoints/{own}', undefined, [403]],
    [
      'A02 a read key deletes by a method override',
      'readKey',
      'GET',
      '/v1/endpoints/{own}',
      undefined,
      [200],
      override,
    ],
    [
      'A03 a read key reads a signing secret',
      'readKey',
      'GET',
      '/v1/endpoints/{own}/secret',
      undefined,
      [403],
    ],
    ['A04 a read key publishes', 'readKey', 'POST', '/v1/events', { type: 'a.b', data: 1 }, [403]],
    ['A05 a read key creates an inbox', 'readKey', 'POST', '/v1/inboxes', {}, [403]],
    [
      'A06 a tenant reads the endpoint of another',
      'tenantKey',
      'GET',
      '/v1/endpoints/{endpoint}',
      undefined,
      [404],
    ],
    [
      'A07 a tenant changes the endpoint of another',
      'tenantKey',
      'PATCH',
      '/v1/endpoints/{endpoint}',
      { url: 'https://attacker.example/' },
      [404],
    ],
    [
      'A08 a tenant reads the secret of another',
      'tenantKey',
      'GET',
      '/v1/endpoints/{endpoint}/secret',
      undefined,
      [404],
    ],
    ['A09 a tenant reads the event of another', 'tenantKey', 'GET', '/v1/events/{event}', undefined, [404]],
    [
      'A10 a tenant reads the attempts of another',
      'tenantKey',
      'GET',
      '/v1/deliveries/{delivery}/attempts',
      undefined,
      [404],
    ],
    [
      'A11 a tenant reads a sent request of another',
      'tenantKey',
      'GET',
      '/v1/deliveries/{delivery}/attempts/1/request',
      undefined,
      [404],
    ],
    [
      'A12 a tenant replays a delivery of another',
      'tenantKey',
      'POST',
      '/v1/deliveries/{delivery}/replay',
      undefined,
      [404],
    ],
    [
      'A13 a tenant reads the inbox of another',
      'tenantKey',
      'GET',
      '/v1/inboxes/{inbox}/requests',
      undefined,
      [404],
    ],
    [
      'A14 a tenant lists another by a filter',
      'tenantKey',
      'GET',
      '/v1/endpoints?tenant={victim}',
      undefined,
      [403],
    ],
    [
      'A15 a tenant repeats the filter',
      'tenantKey',
      'GET',
      '/v1/endpoints?tenant={acme}&tenant={victim}',
      undefined,
      [403, 422],
    ],
    [
      'A16 a tenant creates an endpoint for another',
      'tenantKey',
      'POST',
      '/v1/endpoints',
      { url: 'https://example.com/', tenant: '{victim}' },
      [403],
    ],
    [
      'A17 a tenant publishes for another',
      'tenantKey',
      'POST',
      '/v1/events',
      { type: 'a.b', data: 1, tenant: '{victim}' },
      [403],
    ],
    [
      'A18 a tenant publishes to the endpoint of another',
      'tenantKey',
      'POST',
      '/v1/events',
      { type: 'a.b', data: 1, endpoint_ids: ['{endpoint}'] },
      [404, 422],
    ],
    [
      'A19 a tenant moves its endpoint to another tenant',
      'tenantKey',
      'PATCH',
      '/v1/endpoints/{own}',
      { tenant: '{victim}' },
      [422],
    ],
    ['A20 a tenant creates an admin key', 'tenantKey', 'POST', '/v1/keys', { scope: 'admin' }, [403]],
    ['A21 a tenant revokes a key', 'tenantKey', 'DELETE', '/v1/keys/{key}', undefined, [403]],
    [
      'A22 a tenant raises its own limits',
      'tenantKey',
      'PUT',
      '/v1/tenants/{acme}',
      { max_endpoints: 100_000 },
      [403],
    ],
    [
      'A23 a tenant publishes an operational event',
      'tenantKey',
      'POST',
      '/v1/events',
      { type: 'posthorn.endpoint.disabled', data: 1 },
      [422],
    ],
    [
      'A24 a tenant subscribes to the live tail of another',
      'tenantKey',
      'GET',
      '/v1/stream?tenant={victim}',
      undefined,
      [403],
    ],
    [
      'A25 a tenant reads the statistics of another',
      'tenantKey',
      'GET',
      '/v1/stats?tenant={victim}',
      undefined,
      [403, 422],
    ],
  ];
  it.each(listed(cases))('%s', async (_title, key, method, path, body, statuses, headers = {}) => {
    const answer = await posthorn.api(method, fill(path), fill(body), { key: world[key], headers });
    expect(statuses, answer.text).toContain(answer.status);
    if (!JSON.stringify([path, body]).includes('{victim}')) expect(answer.text).not.toContain(world.victim);
    await expectStatus(posthorn.api('GET', `/v1/endpoints/${ids.own}`), 200);
  });

  const [A26] = listed([['A26 a stored answer of another key, by its Idempotency-Key']]);
  it(A26![0], async () => {
    const headers = { 'idempotency-key': 'the same for both' };
    const create = (key: string, tenant: string) =>
      posthorn.api('POST', '/v1/endpoints', { url: 'https://example.com/', tenant }, { key, headers });
    const { body: first } = await expectStatus(create(ADMIN_KEY, world.victim), 201);
    const { body: second } = await expectStatus(create(world.tenantKey, world.acme), 201);
    expect(second.id).not.toBe(first.id);
    expect(second.secret).not.toBe(first.secret);
  });
});

describe('ambiguous or disguised requests', () => {
  const LINES: [string, string, readonly number[]][] = [
    ['H01 files above the console', 'GET /console/..%2f..%2fpackage.json', [200, 400, 404, 503]],
    [
      'H02 files above the console, with dots escaped',
      'GET /console/%2e%2e/%2e%2e/package.json',
      [200, 400, 404, 503],
    ],
    ['H03 a NUL in the path of a file', 'GET /console/index.html%00.js', [200, 400, 404, 503]],
    ['H04 a path with a backslash', 'GET /console/..\\..\\package.json', [200, 400, 404, 503]],
    ['H05 another host in the request line', 'GET http://attacker.example/v1/endpoints', [400, 401, 404]],
    ['H06 a path that begins with two slashes', 'GET //attacker.example/%2e%2e', [400, 404]],
    ['H07 CONNECT to an internal address', 'CONNECT 169.254.169.254:80', [400, 404, 405]],
    ['H08 TRACE, which repeats headers', 'TRACE /v1/endpoints', [400, 404, 405]],
    ['H09 an unknown method', 'PURGE /v1/endpoints', [400, 404, 405]],
    ['H10 a broken escape', 'GET /v1/endpoints/%E0%A4%A', [400, 401, 404]],
  ];
  it.each(listed(LINES))('%s', async (_title, line, statuses) => {
    const secret = 'repeat-me-not';
    const { answers } = await exchange(
      posthorn.url,
      `${line} HTTP/1.1\r\nhost: attacker.example\r\nconnection: close\r\nx-secret: ${secret}\r\n\r\n`,
      { timeoutMs: 2000 },
    );
    const answer = answers[0];
    if (answer === undefined) return;
    expect(statuses, answer.body).toContain(answer.status);
    expect(answer.body).not.toContain('"devDependencies"');
    expect(JSON.stringify(answer)).not.toContain(secret);
    expect(answer.headers.location ?? '').not.toContain('attacker');
  });

  const UPGRADES: [string, string][] = [
    [
      'H11 an upgrade to WebSocket',
      'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    ],
    ['H12 an upgrade to HTTP/2', 'upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__'],
  ];
  it.each(listed(UPGRADES))('%s is not answered with 101', async (_title, headers) => {
    const head = `GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n${headers}\r\n\r\n`;
    const { answers } = await exchange(posthorn.url, head, { timeoutMs: 2000 });
    expect(answers[0]?.status).not.toBe(101);
  });

  const BODIES: [string, string, string | Buffer, readonly number[]][] = [
    ['H13 JSON as text/plain, which a form can send', 'text/plain', '{"type":"a.b","data":1}', [415]],
    ['H14 a form', 'application/x-www-form-urlencoded', 'type=a.b&data=1', [415]],
    ['H15 another character set', 'application/json; charset=utf-7', '{"type":"a.b","data":1}', [415]],
    [
      'H16 two fields of the same name',
      'application/json',
      '{"type":"a.b","type":"c.d","data":1}',
      [400, 422],
    ],
    [
      'H17 a number that no double can hold',
      'application/json',
      '{"type":"a.b","data":1,"deliver_at":1e999}',
      [400, 422],
    ],
    [
      'H18 `__proto__` as a field',
      'application/json',
      '{"type":"a.b","data":1,"__proto__":{"tenant":"x"}}',
      [400, 422],
    ],
    ['H19 100,000 brackets', 'application/json', `{"type":"a.b","data":${'['.repeat(100_000)}`, [400, 422]],
    [
      'H20 UTF-16',
      'application/json',
      Buffer.from('\ufeff{"type":"a.b","data":1}', 'utf16le'),
      [400, 415, 422],
    ],
  ];
  it.each(listed(BODIES))('%s', async (_title, type, body, statuses) => {
    const { status, text } = await posthorn.api('POST', '/v1/events', body, {
      headers: { 'content-type': type },
    });
    expect(statuses, text).toContain(status);
  });
});

describe('hostile settings of an endpoint', () => {
  const cases: [string, object, string][] = [
    ['C01 a line break in a header', { headers: { 'x-a': 'b\r\nx-injected: 1' } }, 'headers.x-a'],
    ['C02 a colon in the name of a header', { headers: { 'x-a: b': 'c' } }, 'headers.x-a: b'],
    ['C03 the header `host`', { headers: { Host: 'victim.example' } }, 'headers.Host'],
    [
      'C04 the header `transfer-encoding`',
      { headers: { 'Transfer-Encoding': 'chunked' } },
      'headers.Transfer-Encoding',
    ],
    ['C05 the header `content-length`', { headers: { 'content-length': '0' } }, 'headers.content-length'],
    [
      'C06 the signature as a header',
      { headers: { 'Webhook-Signature': 'v1,x' } },
      'headers.Webhook-Signature',
    ],
    ['C07 a header of the proxy', { headers: { 'Proxy-Authorization': 'x' } }, 'headers.Proxy-Authorization'],
    ['C08 the header `connection`', { headers: { connection: 'x-env' } }, 'headers.connection'],
    [
      'C09 the signature in `content-length`',
      { signature: { profile: 'hex', header: 'content-length' } },
      'signature.header',
    ],
    [
      'C10 a line break before the signature',
      { signature: { profile: 'hex', header: 'x-sig', prefix: 'a\r\nb: ' } },
      'signature.prefix',
    ],
    [
      'C11 a colon in the user name',
      { auth: { type: 'basic', username: 'a:b', password: 'c' } },
      'auth.username',
    ],
    ['C12 a line break in a token', { auth: { type: 'bearer', token: 'a\r\nb' } }, 'auth.token'],
    ['C13 a line break in `api_version`', { api_version: '1\r\nx: y' }, 'api_version'],
    [
      'C14 51 names in `plain_headers`',
      { plain_headers: Array.from({ length: 51 }, (_, n) => `x-${n}`) },
      'plain_headers',
    ],
    [
      'C15 51 headers',
      { headers: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`x-${n}`, 'a'])) },
      'headers',
    ],
    ['C16 a URL with credentials', { url: 'https://user:secret@example.com/' }, 'url'],
    ['C17 a URL to a metadata service', { url: 'https://[::ffff:169.254.169.254]/' }, 'url'],
    [
      'C18 a token URL to a private address',
      { auth: { type: 'oauth2', token_url: 'https://10.0.0.1/', client_id: 'a', client_secret: 'b' } },
      'auth.token_url',
    ],
    [
      'C19 a filter that is nested 1,000 times',
      { filter: JSON.parse(`${'{"$not":'.repeat(1000)}{"type":"a"}${'}'.repeat(1000)}`) },
      'body',
    ],
    ['C20 a pattern with a wildcard in the middle', { events: ['a.*.b'] }, 'events[0]'],
  ];
  it.each(listed(cases))('%s: 422, and nothing is stored', async (_title, settings, path) => {
    const tenant = newTenant();
    const endpoint = { url: 'https://example.com/', tenant, ...settings };
    const answer = await posthorn.api('POST', '/v1/endpoints', endpoint);
    expect([400, 422], answer.text).toContain(answer.status);
    if (answer.status === 422)
      expect(JSON.stringify(answer.body.errors)).toContain(JSON.stringify(path).slice(1, -1));
    const { body } = await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`);
    expect(body.data).toEqual([]);
  });
});

describe('answers of hostile receivers', () => {
  let deliverer: Deliverer;
  beforeAll(() => {
    deliverer = createDeliverer({
      egress: DEVELOPMENT_EGRESS,
      userAgent: 'Posthorn/test',
      publicUrl: 'https://posthorn.test',
    });
  });
  afterAll(() => deliverer.close());

  const lines = (...all: string[]): Behaviour => rawThenClose(`${all.join('\r\n')}\r\n\r\n`);
  const cases: [string, Reply | Behaviour, string | null][] = [
    ['R01 a redirect to a file', redirect('file:///etc/passwd'), 'egress_forbidden'],
    ['R02 a redirect to `javascript:`', redirect('javascript:alert(1)'), 'egress_forbidden'],
    ['R03 a redirect to a private address', redirect('http://10.0.0.1/'), 'egress_forbidden'],
    ['R04 a redirect to a metadata service in decimal', redirect('http://2852039166/'), 'egress_forbidden'],
    ['R05 a redirect with credentials', redirect('http://a:b@127.0.0.1/'), 'egress_forbidden'],
    ['R06 a redirect to a URL without a host', redirect('http://'), 'redirect_failed'],
    ['R07 a redirect that turns the POST into a GET', redirect('/elsewhere', 302), 'redirect_failed'],
    ['R08 a redirect to itself, forever', ({ path }) => redirect(path), 'redirect_failed'],
    [
      'R09 101 Switching Protocols',
      lines('HTTP/1.1 101 Switching Protocols', 'upgrade: x', 'connection: upgrade'),
      'http_1xx',
    ],
    ['R10 a negative content length', lines('HTTP/1.1 200 OK', 'content-length: -1'), 'response_invalid'],
    [
      'R11 two content lengths',
      lines('HTTP/1.1 200 OK', 'content-length: 1', 'content-length: 2'),
      'response_invalid',
    ],
    [
      'R12 a length and chunks',
      lines('HTTP/1.1 200 OK', 'content-length: 1', 'transfer-encoding: chunked'),
      'response_invalid',
    ],
    ['R13 a status of four digits', lines('HTTP/1.1 2000 OK', 'content-length: 0'), 'response_invalid'],
    ['R14 a NUL in a header', lines('HTTP/1.1 200 OK', 'x: \0', 'content-length: 0'), 'response_invalid'],
    ['R15 a line break in a status line', lines('HTTP/1.1\n200 OK', 'content-length: 0'), 'response_invalid'],
    ['R16 HTTP/2 without being asked', rawThenClose('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'response_invalid'],
    ['R17 a banner of SSH', rawThenClose('SSH-2.0-OpenSSH_9.9\r\n'), 'response_invalid'],
    ['R18 an answer of Redis', rawThenClose("-ERR unknown command 'POST'\r\n"), 'response_invalid'],
    [
      'R19 a Retry-After of centuries',
      { status: 429, headers: { 'retry-after': '99999999999' } },
      'http_429',
    ],
    ['R20 a Retry-After that is no number', { status: 503, headers: { 'retry-after': '-1e9' } }, 'http_5xx'],
    [
      'R21 a body that claims to be compressed',
      { headers: { 'content-encoding': 'gzip' }, body: 'not gzip' },
      null,
    ],
  ];
  it.each(listed(cases))('%s', async (_title, answer, errorClass) => {
    const receiver = await newReceiver();
    receiver.answer(answer);
    const outcome = await attempt(
      deliverer,
      anEndpoint(`${receiver.url}/hook`, { followRedirects: 3, timeoutMs: 3000 }),
    );
    expect(outcome.error?.class ?? null, outcome.error?.message).toBe(errorClass);
    expect(receiver.requests.length).toBeLessThanOrEqual(4);
    expect(outcome.retryAfterMs === null || Number.isFinite(outcome.retryAfterMs)).toBe(true);
    expect(JSON.stringify(outcome.error) ?? '').not.toMatch(/passwd|10\.0\.0\.1|169\.254/);
  });

  const [R22] = listed([['R22 a cookie, to recognize the next request']]);
  it(`${R22![0]}: is not sent back`, async () => {
    const receiver = await newReceiver();
    receiver.answer({ headers: { 'set-cookie': 'id=1; Path=/', 'alt-svc': 'h3=":443"' } });
    for (let n = 0; n < 2; n += 1) await attempt(deliverer, anEndpoint(receiver.url));
    expect(receiver.requests[1]!.headers).not.toHaveProperty('cookie');
  });
});

it('security-cases.md lists exactly these attacks', async () => {
  const list = await readFile(new URL('./security-cases.md', import.meta.url), 'utf8');
  const written = [...list.matchAll(/^\| ([A-Z]\d\d .*?) \|/gm)].map(([, title]) => title);
  expect(written.sort()).toEqual(titles.sort());
  expect(titles.length).toBeGreaterThanOrEqual(50);
});
