/** How the API answers hostile and malformed requests: with a problem, never with a 500. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  ADMIN_KEY,
  type Answer,
  createEndpoint,
  expectStatus,
  newTenant,
  usePosthorn,
} from '../support/posthorn.ts';
import { exchange, type RawAnswer, type RawOptions } from '../support/raw-http.ts';

const posthorn = usePosthorn({ env: { POSTHORN_REQUEST_TIMEOUT_MS: '1s' } });
let pid: number;
beforeAll(() => {
  pid = posthorn.pid;
});
const URL_OF_NOBODY = 'https://example.com/';

const raw = (request: Parameters<typeof exchange>[1], options?: RawOptions) =>
  exchange(posthorn.url, request, options);
const head = (line: string, ...headers: string[]): string =>
  [line, 'host: posthorn', `authorization: Bearer ${ADMIN_KEY}`, ...headers, '', ''].join('\r\n');
const post = (path: string, body: string, ...headers: string[]): string =>
  head(
    `POST ${path} HTTP/1.1`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ) + body;

/** Every refusal has this form, also those of the HTTP parser, which reach no route. */
function expectProblem(answer: RawAnswer | undefined, status: number, code: string): void {
  expect(answer).toMatchObject({ status });
  expect(answer!.headers).toMatchObject({
    'content-type': 'application/problem+json; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^req_/),
  });
  expect(JSON.parse(answer!.body)).toMatchObject({
    status,
    code,
    request_id: answer!.headers['x-request-id'],
  });
  expectNoInsides(answer!.body);
}

/** No stack, no path, no SQL. */
function expectNoInsides(text: string): void {
  expect(text).not.toMatch(
    /\bat .*:\d+:\d+|node_modules|\.ts\b|node:|select |insert |posthorn\.\w+|ECONN|FST_/i,
  );
}

describe('ambiguous framing is refused, and the connection is closed', () => {
  const events = 'POST /v1/events HTTP/1.1\r\ncontent-type: application/json';
  test.each([
    [
      'content-length and transfer-encoding',
      `${head(events, 'content-length: 4', 'transfer-encoding: chunked')}0\r\n\r\n`,
    ],
    [
      'transfer-encoding and content-length',
      `${head(events, 'transfer-encoding: chunked', 'content-length: 4')}0\r\n\r\n`,
    ],
    ['two different lengths', `${head(events, 'content-length: 2', 'content-length: 3')}{} `],
    ['two lengths in one header', `${head(events, 'content-length: 2, 2')}{}`],
    ['a negative length', head(events, 'content-length: -1')],
    ['a length in hex', `${head(events, 'content-length: 0x2')}{}`],
    ['a length with a sign', `${head(events, 'content-length: +2')}{}`],
    ['an unknown transfer-encoding', `${head(events, 'transfer-encoding: gzip')}{}`],
    ['chunked, but not last', `${head(events, 'transfer-encoding: chunked, gzip')}0\r\n\r\n`],
    ['a disguised transfer-encoding', `${head(events, 'transfer-encoding: xchunked')}0\r\n\r\n`],
    ['a blank before the colon', `${head(events, 'transfer-encoding : chunked')}0\r\n\r\n`],
    ['a chunk size that is none', `${head(events, 'transfer-encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`],
    [
      'an endless chunk extension',
      `${head(events, 'transfer-encoding: chunked')}2;${'x'.repeat(20_000)}\r\n{}\r\n`,
    ],
    ['a folded header', head('GET /healthz HTTP/1.1', 'x: a\r\n b')],
    ['line feeds alone', 'GET /healthz HTTP/1.1\nhost: x\n\n'],
    ['a carriage return in a header', head('GET /healthz HTTP/1.1', 'x: a\rb')],
    ['a NUL in a header', head('GET /healthz HTTP/1.1', 'x: a\0b')],
    ['a NUL in the path', head('GET /healthz\0 HTTP/1.1')],
    ['a header without a name', head('GET /healthz HTTP/1.1', ': a')],
    ['an unknown method', head('BREW /healthz HTTP/1.1')],
    ['a method in lower case', head('get /healthz HTTP/1.1')],
    ['HTTP/2 without being asked', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/3.7', head('GET /healthz HTTP/3.7')],
    ['HTTP/0.9', 'GET /healthz\r\n\r\n'],
    ['a TLS handshake', Buffer.from('16030100c8010000c40303', 'hex')],
  ])('%s', async (_what, request) => {
    const { answers, closed } = await raw(request, { untilClosed: true });
    expect(closed).toBe(true);
    expect(answers).toHaveLength(1);
    expectProblem(answers[0], 400, 'bad_request');
  });

  test('a refused request has no effect', async () => {
    const tenant = newTenant();
    const smuggled = post('/v1/endpoints', JSON.stringify({ url: URL_OF_NOBODY, tenant }));
    const request = head(events, 'content-length: 4', 'transfer-encoding: chunked');
    await raw(`${request}0\r\n\r\n${smuggled}`, { untilClosed: true });
    expect((await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data).toEqual([]);
  });

  test('CONNECT opens no tunnel, and Upgrade is ignored', async () => {
    const tunnel = await raw(head('CONNECT example.com:80 HTTP/1.1'), { untilClosed: true, timeoutMs: 2000 });
    expect([tunnel.answers, tunnel.closed]).toEqual([[], true]);
    const upgrade = await raw(head('GET /healthz HTTP/1.1', 'connection: upgrade', 'upgrade: h2c'));
    expect(upgrade.answers[0]?.status).toBe(200);
  });

  test('a missing host is refused, and an unknown expectation is ignored', async () => {
    const { answers } = await raw('GET /healthz HTTP/1.1\r\n\r\n');
    expectProblem(answers[0], 400, 'bad_request');
    const expecting = await raw(post('/v1/endpoints', '{}', 'expect: a miracle'));
    expectProblem(expecting.answers[0], 422, 'invalid');
    const asking = await raw(post('/v1/endpoints', '{}', 'expect: 100-continue'), { answers: 2 });
    expect(asking.answers.map(({ status }) => status)).toEqual([100, 422]);
  });
});

describe('other HTTP versions and methods', () => {
  test('an HTTP/1.0 request is answered and its connection closed', async () => {
    const { answers, closed } = await raw('GET /healthz HTTP/1.0\r\n\r\n', { untilClosed: true });
    expect([answers[0]?.status, closed]).toEqual([200, true]);
  });

  test('pipelined requests are answered in order', async () => {
    const paths = ['/healthz', '/nowhere', '/v1/endpoints/ep_x', '/healthz', '/v1/keys?limit=0'];
    const request = paths.map((path) => head(`GET ${path} HTTP/1.1`)).join('');
    const { answers } = await raw(request, { answers: paths.length });
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 404, 200, 422]);
    expect(new Set(answers.map(({ headers }) => headers['x-request-id'])).size).toBe(paths.length);
  });

  test('an absolute URL in the request line does not change the server', async () => {
    const { answers } = await raw(head('GET http://169.254.169.254/healthz HTTP/1.1'));
    expect(answers[0]).toMatchObject({ status: 200, body: '{"status":"ok"}' });
  });

  test.each(['TRACE', 'OPTIONS', 'PUT', 'PROPFIND', 'DELETE'])('%s is not supported', async (method) => {
    const { answers } = await raw(head(`${method} /v1/events HTTP/1.1`, 'content-length: 0'));
    expectProblem(answers[0], 405, 'method_not_allowed');
    expect(answers[0]!.headers.allow).toBe('GET, HEAD, POST');
  });

  test('HEAD is not supported for streams, and not listed in Allow', async () => {
    for (const method of ['HEAD', 'POST']) {
      const answer = await posthorn.api(method, '/v1/stream');
      expect([answer.status, answer.headers.allow]).toEqual([405, 'GET']);
    }
  });

  test('a literal address is not taken for an id by the methods that it lacks', async () => {
    for (const [method, path, allow] of [
      ['PATCH', '/v1/keys/current', 'GET, HEAD'],
      ['GET', '/v1/sources/kafka/rejected/retry', 'POST'],
      ['GET', '/v1/events/batch?x=1', 'POST'],
    ] as const) {
      const answer = await posthorn.api(method, path);
      expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    }
  });

  test('HEAD is GET without a body', async () => {
    const { answers, closed } = await raw('HEAD /healthz HTTP/1.0\r\n\r\n', { untilClosed: true });
    // The length that it announces never comes.
    expect([answers, closed]).toEqual([[], true]);
  });
});

describe('limits', () => {
  test.each([
    ['one header', `x: ${'a'.repeat(20_000)}`],
    ['many headers', Array.from({ length: 3000 }, (_, n) => `x-${n}: y`).join('\r\n')],
    ['a cookie jar', `cookie: ${'a=b; '.repeat(5000)}`],
  ])('431: %s', async (_what, header) => {
    const { answers, closed } = await raw(head('GET /healthz HTTP/1.1', header), { untilClosed: true });
    expectProblem(answers[0], 431, 'headers_too_large');
    expect(closed).toBe(true);
  });

  test('a very long URL is 431 beyond the limit of the headers, and 404 below it', async () => {
    const longest = await raw(head(`GET /v1/endpoints/${'a'.repeat(20_000)} HTTP/1.1`), {
      untilClosed: true,
    });
    expectProblem(longest.answers[0], 431, 'headers_too_large');
    for (const path of [
      `/v1/endpoints/${'a'.repeat(10_000)}`,
      `/${'a/'.repeat(5000)}`,
      `/v1/tasks/${'%41'.repeat(1000)}`,
    ]) {
      const { answers } = await raw(head(`GET ${path} HTTP/1.1`));
      expectProblem(answers[0], 404, 'not_found');
    }
    const query = await raw(head(`GET /v1/endpoints?tenant=${'a'.repeat(10_000)} HTTP/1.1`));
    expect(query.answers[0]?.status).toBe(422);
    const many = await raw(head(`GET /v1/endpoints?${'a=b&'.repeat(3000)} HTTP/1.1`));
    expect(many.answers[0]?.status).toBe(422);
  });

  test.each(['%', '%zz', '%c3%28', '%00', '..%2f..%2fetc%2fpasswd', '%2e%2e/%2e%2e/etc/passwd', '%ff'])(
    'a URL that cannot be decoded or leads elsewhere: %s',
    async (path) => {
      const { answers } = await raw(head(`GET /v1/endpoints/${path} HTTP/1.1`));
      expect([400, 404]).toContain(answers[0]?.status);
      expectProblem(answers[0], answers[0]!.status, answers[0]!.status === 400 ? 'bad_request' : 'not_found');
    },
  );

  test('413 by content-length, before the body is sent', async () => {
    for (const path of ['/v1/endpoints', '/v1/keys', '/v1/events', '/v1/events/batch']) {
      const request = head(
        `POST ${path} HTTP/1.1`,
        'content-type: application/json',
        'content-length: 99999999999',
      );
      const { answers } = await raw(request);
      expectProblem(answers[0], 413, 'too_large');
    }
  });

  test('413 by the received bytes, if there is no content-length', async () => {
    const chunk = 'a'.repeat(64 * 1024);
    const { answers } = await raw(async (socket) => {
      socket.write(
        head('POST /v1/endpoints HTTP/1.1', 'content-type: application/json', 'transfer-encoding: chunked'),
      );
      for (let n = 0; n < 40 && !socket.destroyed; n += 1) {
        socket.write(`10000\r\n${chunk}\r\n`);
        await sleep(1);
      }
    });
    expectProblem(answers[0], 413, 'too_large');
  });

  test('requests other than events have a smaller limit', async () => {
    const endpoint = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    const path = `/v1/endpoints/${endpoint.id}`;
    const tooMuch: [string, unknown][] = [
      ['metadata', { a: 'x'.repeat(20_000) }],
      ['headers', Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`x-${n}`, 'y']))],
      ['description', 'x'.repeat(501)],
      ['channels', Array.from({ length: 51 }, (_, n) => `${n}`)],
    ];
    for (const [field, value] of tooMuch) {
      const { body } = await expectStatus(posthorn.api('PATCH', path, { [field]: value }), 422);
      expect(body.errors).toMatchObject([{ path: field }]);
    }
    // The limit also applies to the sum of several patches.
    for (const name of ['a', 'b']) {
      const metadata = { [name]: 'x'.repeat(10_000) };
      await expectStatus(posthorn.api('PATCH', path, { metadata }), name === 'a' ? 200 : 422);
    }
  });
});

describe('slow clients are disconnected', () => {
  const drip =
    (text: string, everyMs: number) =>
    async (socket: import('node:net').Socket): Promise<void> => {
      for (const character of text) {
        if (socket.destroyed) return;
        socket.write(character);
        await sleep(everyMs);
      }
    };
  const slow: [string, string, string][] = [
    ['headers, a byte at a time', '', `GET /healthz HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(1000)}`],
    ['headers that stop', 'GET /healthz HTTP/1.1\r\nhost: x\r\n', ''],
    [
      'a body, a byte at a time',
      head('POST /v1/endpoints HTTP/1.1', 'content-type: application/json', 'content-length: 9999'),
      ' '.repeat(1000),
    ],
    [
      'a body that stops',
      head('POST /v1/events HTTP/1.1', 'content-type: application/json', 'content-length: 9999'),
      '{',
    ],
    [
      'chunks that stop',
      head('POST /v1/events HTTP/1.1', 'content-type: application/json', 'transfer-encoding: chunked'),
      '1\r\n{\r\n',
    ],
  ];
  test.concurrent.each(slow)('%s', async (_what, first, then) => {
    const { answers, closed, ms } = await raw(
      async (socket) => {
        socket.write(first);
        await drip(then, 20)(socket);
      },
      { untilClosed: true },
    );
    expect(closed).toBe(true);
    expectProblem(answers[0], 408, 'request_timeout');
    // POSTHORN_REQUEST_TIMEOUT_MS is one second here. The server checks it every half second.
    expect(ms).toBeGreaterThan(900);
    expect(ms).toBeLessThan(10_000);
  });

  test.concurrent('a connection that was never used is closed without an answer', async () => {
    const { answers, closed } = await raw(async () => {}, { untilClosed: true });
    expect(closed).toBe(true);
    expect(answers).toEqual([]);
  });
});

describe('content types', () => {
  test.each([
    'text/plain',
    'text/json',
    'application/jsonx',
    'application/merge-patch+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'application/json;charset="shift_jis"',
    'application/json, text/plain',
    'nonsense',
    '',
  ])('415: %s', async (type) => {
    for (const path of ['/v1/endpoints', '/v1/events', '/v1/events/batch']) {
      const answer = await posthorn.api('POST', path, '{}', { headers: { 'content-type': type } });
      expect(answer.body, path).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    }
  });

  test('415 without a content type, and for a compressed body', async () => {
    const { answers } = await raw(`${head('POST /v1/events HTTP/1.1', 'content-length: 2')}{}`);
    expectProblem(answers[0], 415, 'unsupported_media_type');
    for (const path of ['/v1/endpoints', '/v1/events'])
      for (const encoding of ['gzip', 'br', 'identity, gzip'])
        expectProblem(
          (await raw(post(path, '{}', `content-encoding: ${encoding}`))).answers[0],
          415,
          'unsupported_media_type',
        );
  });

  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
  ])('accepted: %s', async (type) => {
    const event = JSON.stringify({ type: 'a.b', data: 1, tenant: newTenant() });
    await expectStatus(posthorn.api('POST', '/v1/events', event, { headers: { 'content-type': type } }), 202);
  });

  test.each(['application/merge-patch+json', 'Application/Merge-Patch+JSON; charset=utf-8'])(
    'a PATCH may have the content type %s',
    async (type) => {
      const tenant = newTenant();
      const created = await posthorn.api('POST', '/v1/endpoints', {
        tenant,
        url: 'https://hooks.example.com/',
        description: 'before',
        events: ['a.b'],
      });
      const path = `/v1/endpoints/${created.body.id}`;
      const headers = { 'content-type': type };
      const changed = await posthorn.api('PATCH', path, '{"description":null}', { headers });
      expect([changed.status, changed.body.description]).toEqual([200, '']);
      const wrong = await posthorn.api('PATCH', path, '{"description":1}', { headers });
      expect(wrong.status).toBe(422);
    },
  );
});

describe('browsers', () => {
  test('every answer has security headers, and none has CORS headers', async () => {
    const origin = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
    const answers: Answer[] = [
      await posthorn.api('OPTIONS', '/v1/events', undefined, { headers: origin }),
      await posthorn.api('GET', '/v1/endpoints', undefined, { headers: origin }),
      await posthorn.api('GET', '/healthz', undefined, { headers: origin }),
      await posthorn.api('GET', '/nowhere', undefined, { headers: origin }),
      await posthorn.api('GET', '/v1/endpoints', undefined, { headers: origin, key: null }),
      await posthorn.api('GET', '/v1/endpoints/%zz', undefined, { headers: origin }),
      await posthorn.api(
        'POST',
        '/v1/events',
        { type: 'a.b', data: 1, tenant: newTenant() },
        { headers: origin },
      ),
    ];
    for (const { headers } of answers) {
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'no-referrer',
      });
      expect(headers).not.toHaveProperty('server');
      expect(headers).not.toHaveProperty('x-powered-by');
      expect(headers).not.toHaveProperty('set-cookie');
    }
    // A web page can send a form without a CORS preflight. The API refuses forms.
    const form = await posthorn.api('POST', '/v1/events', 'type=a.b', {
      headers: { ...origin, 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(form.status).toBe(415);
  });
});

describe('bodies', () => {
  const create = (body: string | Buffer) => posthorn.api('POST', '/v1/endpoints', body);
  const withMetadata = (metadata: string) => `{"url":"${URL_OF_NOBODY}","metadata":${metadata}}`;

  test.each([
    ['__proto__', `{"url":"${URL_OF_NOBODY}","__proto__":{"admin":true}}`],
    ['metadata.__proto__', withMetadata('{"__proto__":{"polluted":true}}')],
    ['metadata.a.__proto__', withMetadata('{"a":{"__proto__":{"polluted":true}}}')],
    ['metadata.__proto__', withMetadata('{"__pr\\u006fto__":1}')],
    ['headers.__proto__', `{"url":"${URL_OF_NOBODY}","headers":{"__proto__":"x"}}`],
    ['retry.__proto__', `{"url":"${URL_OF_NOBODY}","retry":{"__proto__":{"attempts":1}}}`],
    ['constructor', `{"url":"${URL_OF_NOBODY}","constructor":{"prototype":{"polluted":true}}}`],
    ['prototype', `{"url":"${URL_OF_NOBODY}","prototype":{}}`],
    ['toString', `{"url":"${URL_OF_NOBODY}","toString":"x"}`],
  ])('a prototype cannot be reached: %s', async (path, body) => {
    const answer = await expectStatus(create(body), 422);
    expect(answer.body.errors).toMatchObject([{ path }]);
  });

  test('a field name such as "constructor" has no special meaning', async () => {
    const metadata = { constructor: { prototype: { polluted: true } }, hasOwnProperty: 1, toString: 'x' };
    const { body } = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, metadata }),
      201,
    );
    expect(body.metadata).toEqual(metadata);
    const shown = await posthorn.api('GET', `/v1/endpoints/${body.id}`);
    expect(shown.body.metadata).toEqual(metadata);
    // Other objects are not affected.
    const other = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    expect(other).not.toHaveProperty('polluted');
  });

  test('the data of an event is kept byte for byte, whatever its field names are', async () => {
    const body = `{"type":"a.b","tenant":"${newTenant()}","data":{"__proto__":{"x":1},"constructor":null,"n":"\\u0000"}}`;
    await expectStatus(posthorn.api('POST', '/v1/events', body), 202);
  });

  test.each([65, 1000, 10_000, 80_000])('nesting of %i levels is 422, in POST and PATCH', async (levels) => {
    const endpoint = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    for (const [open, close] of [
      ['{"a":', '}'],
      ['[', ']'],
    ]) {
      const metadata = `{"x":${open!.repeat(levels)}1${close!.repeat(levels)}}`;
      for (const [method, path, body] of [
        ['POST', '/v1/endpoints', withMetadata(metadata)],
        ['PATCH', `/v1/endpoints/${endpoint.id}`, `{"metadata":${metadata}}`],
      ] as const) {
        const answer = await expectStatus(posthorn.api(method, path, body), 422);
        expect(answer.body.errors).toMatchObject([{ path: 'body' }]);
      }
    }
  });

  test.each([
    ['nothing but a brace', '{'],
    ['a trailing comma', '{"url":"x",}'],
    ['two values', '{}{}'],
    ['a comment', '{/**/}'],
    ['single quotes', "{'url':1}"],
    ['NaN', '{"url":NaN}'],
    ['a raw NUL', '{"url":"\0"}'],
    ['a raw line feed', '{"url":"\n"}'],
    ['a byte order mark', '\ufeff{}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['UTF-16', Buffer.from('{}', 'utf16le')],
  ])('malformed: %s', async (_what, body) => {
    for (const path of ['/v1/endpoints', '/v1/keys', '/v1/events']) {
      const answer = await expectStatus(posthorn.api('POST', path, body), 400);
      expect(answer.body).toMatchObject({ code: 'malformed_json' });
      expectNoInsides(answer.text);
    }
  });

  test.each(['null', '[]', '1', '"x"', 'true', ''])('JSON that is not an object: %s', async (body) => {
    for (const [method, path] of [
      ['POST', '/v1/endpoints'],
      ['POST', '/v1/keys'],
      ['POST', '/v1/events'],
    ] as const) {
      const answer = await posthorn.api(method, path, body);
      expect([400, 422], `${path}: ${answer.text}`).toContain(answer.status);
      expectNoInsides(answer.text);
    }
  });
});

describe('NUL and unpaired surrogates are 422 in every text, and the error names the field', () => {
  const url = URL_OF_NOBODY;
  /** Every field of an endpoint that takes text, with the text put into it. */
  const fields: [string, (text: string) => Record<string, unknown>][] = [
    ['url', (text) => ({ url: `https://example.com/${text}` })],
    ['description', (text) => ({ url, description: text })],
    ['tenant', (text) => ({ url, tenant: text })],
    ['secret', (text) => ({ url, secret: `whsec_${text}` })],
    ['metadata.a', (text) => ({ url, metadata: { a: text } })],
    ['metadata.a[1].b', (text) => ({ url, metadata: { a: [0, { b: text }] } })],
    ['metadata', (text) => ({ url, metadata: { [text]: 1 } })],
    ['events[0]', (text) => ({ url, events: [text] })],
    ['channels[1]', (text) => ({ url, channels: ['a', text] })],
    ['api_version', (text) => ({ url, api_version: text })],
    ['payload', (text) => ({ url, payload: text })],
    ['headers.x-a', (text) => ({ url, headers: { 'x-a': text } })],
    ['headers', (text) => ({ url, headers: { [`x-${text}`]: 'a' } })],
    ['signature', (text) => ({ url, signature: text })],
    ['signature.header', (text) => ({ url, signature: { profile: 'hex', header: text } })],
    ['signature.prefix', (text) => ({ url, signature: { profile: 'hex', prefix: text } })],
    ['retry.preset', (text) => ({ url, retry: { preset: text } })],
    ['retry.permanent[0]', (text) => ({ url, retry: { permanent: [text] } })],
    ['ordering', (text) => ({ url, ordering: text })],
    ['fifo_on_dead', (text) => ({ url, fifo_on_dead: text })],
  ];
  const bad = { NUL: 'a\0b', 'half a pair': 'a\ud800', 'the other half': '\udc00b' };

  test.each(fields)('%s', async (path, make) => {
    const endpoint = await createEndpoint(posthorn, { url, tenant: newTenant() });
    for (const text of Object.values(bad)) {
      const body = make(text);
      const { tenant, secret, ...patch } = body;
      const tries: [string, string, unknown][] = [['POST', '/v1/endpoints', body]];
      if (tenant === undefined && secret === undefined)
        tries.push(['PATCH', `/v1/endpoints/${endpoint.id}`, patch]);
      for (const [method, to, sent] of tries) {
        const answer = await expectStatus(posthorn.api(method, to, sent), 422);
        expect(answer.body.errors).toMatchObject([{ path }]);
      }
    }
  });

  test.each([
    ['/v1/keys', 'description', (text: string) => ({ scope: 'read', description: text })],
    ['/v1/keys', 'tenant', (text: string) => ({ scope: 'read', tenant: text })],
    ['/v1/keys', 'scope', (text: string) => ({ scope: text })],
    ['/v1/events', 'type', (text: string) => ({ type: text, data: 1 })],
    ['/v1/events', 'tenant', (text: string) => ({ type: 'a.b', data: 1, tenant: text })],
    ['/v1/events', 'idempotency_key', (text: string) => ({ type: 'a.b', data: 1, idempotency_key: text })],
    ['/v1/events', 'channels', (text: string) => ({ type: 'a.b', data: 1, channels: [text] })],
    ['/v1/events', 'headers', (text: string) => ({ type: 'a.b', data: 1, headers: { 'x-a': text } })],
    ['/v1/events', 'schema_version', (text: string) => ({ type: 'a.b', data: 1, schema_version: text })],
  ])('%s: %s', async (route, field, make) => {
    for (const text of Object.values(bad)) {
      const answer = await expectStatus(posthorn.api('POST', route, make(text)), 422);
      expect(answer.body.errors[0].path).toMatch(new RegExp(`^${field}`));
    }
  });

  test.each([
    '/v1/endpoints?tenant=',
    '/v1/deliveries?tenant=',
    '/v1/deliveries?type=',
    '/v1/keys?tenant=',
    '/v1/events?tenant=',
    '/v1/events?idempotency_key=',
  ])('%s', async (path) => {
    const answer = await expectStatus(posthorn.api('GET', `${path}a%00b`), 422);
    expect(answer.body.errors).toMatchObject([{ path: /\?(\w+)=/.exec(path)![1] }]);
  });
});

describe('a custom signature header', () => {
  test.each([
    'host',
    'Content-Length',
    'transfer-encoding',
    'webhook-id',
    'posthorn-attempt',
    'a b',
    'a:',
    'ä',
    'x\r\ny',
    '__proto__',
  ])('must not be %s', async (header) => {
    const signature = { profile: 'hex', header };
    const answer = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, signature }),
      422,
    );
    expect(answer.body.errors).toMatchObject([{ path: 'signature.header' }]);
  });

  test.each(['a\r\nb: c', 'ä', '\u007f'])(
    'must not have a prefix that is invalid in a header: %j',
    async (prefix) => {
      const signature = { profile: 'hex', prefix };
      const answer = await expectStatus(
        posthorn.api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, signature }),
        422,
      );
      expect(answer.body.errors).toMatchObject([{ path: 'signature.prefix' }]);
    },
  );

  test('may have a custom name or that of another profile', async () => {
    for (const header of ['X-Acme-Signature', 'X-Hub-Signature-256', 'Webhook-Signature'])
      await createEndpoint(posthorn, {
        url: URL_OF_NOBODY,
        tenant: newTenant(),
        signature: { profile: 'hex', header },
      });
  });
});

describe('GET /', () => {
  test('redirects a browser to the console', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const answer = await posthorn.api('GET', '/', undefined, { key: null, headers: { accept } });
    expect(answer).toMatchObject({ status: 302, headers: { location: '/console', vary: 'accept' } });
  });

  test('lists the URLs of the server for other clients, and each URL works', async () => {
    const { body } = await expectStatus(
      posthorn.api('GET', '/', undefined, { key: null, headers: { accept: '*/*' } }),
      200,
    );
    expect(body).toMatchObject({ name: 'Posthorn', api: `${posthorn.url}/v1` });
    for (const link of [body.docs, body.openapi, body.health] as string[])
      await expectStatus(posthorn.api('GET', link.slice(posthorn.url.length), undefined, { key: null }), 200);
  });
});

// The last one: whatever the others sent, the process is the one that started and has logged no failed request.
test('the server still runs and has logged no failed request', async () => {
  await expectStatus(posthorn.api('GET', '/healthz'), 200);
  expect(posthorn.pid).toBe(pid);
  expect(posthorn.output()).not.toMatch(/request failed|unexpected error/);
});
