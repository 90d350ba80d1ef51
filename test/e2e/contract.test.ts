/** Details of the HTTP API that clients rely on: what is refused, and that a refused request changes nothing. */
import { describe, expect, test } from 'vitest';
import { Contract } from '../support/contract.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, createEndpoint, expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';
import { exchange } from '../support/raw-http.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'on' } });
const URL_OF_NOBODY = 'https://example.com/';
const JSON_TYPE = { headers: { 'content-type': 'application/json' } };

describe('a body that is null or missing', () => {
  async function expectUnchanged(method: string, path: string): Promise<void> {
    const before = await expectStatus(posthorn.api('GET', path), 200);
    for (const body of ['null', ' null ', '', undefined]) {
      const { body: problem } = await expectStatus(posthorn.api(method, path, body, JSON_TYPE), 422);
      expect(problem).toMatchObject({ code: 'invalid', errors: [{ path: 'body' }] });
    }
    expect((await posthorn.api('GET', path)).body).toEqual(before.body);
  }

  test('does not reset a tenant', async () => {
    const path = `/v1/tenants/${newTenant()}`;
    const settings = { name: 'Acme', metadata: { plan: 'gold' }, ingest_rate_limit: { per_second: 50 } };
    await expectStatus(posthorn.api('PUT', path, settings), 201);
    await expectUnchanged('PUT', path);
  });

  test('does not reset an event type', async () => {
    const path = '/v1/event-types/body.missing';
    await expectStatus(posthorn.api('PUT', path, { description: 'Kept', schema: { type: 'object' } }), 201);
    await expectUnchanged('PUT', path);
  });

  test('does not change an endpoint or an inbox', async () => {
    const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    await expectUnchanged('PATCH', `/v1/endpoints/${id}`);
    const inbox = await expectStatus(posthorn.api('POST', '/v1/inboxes', { status: 503 }), 201);
    await expectUnchanged('PATCH', `/v1/inboxes/${inbox.body.token}`);
  });

  test('null is refused where a missing body means the defaults', async () => {
    const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    const path = `/v1/endpoints/${id}`;
    for (const action of ['rotate-secret', 'pause', 'test', 'replay'])
      await expectStatus(posthorn.api('POST', `${path}/${action}`, 'null'), 422);
    await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, undefined, JSON_TYPE), 200);
    for (const path of ['/v1/events', '/v1/events/batch', '/v1/keys'])
      await expectStatus(posthorn.api('POST', path, 'null'), 422);
  });
});

test.each(['2027-02-30T00:00:00Z', '2027-01-31T24:00:00Z', '2027-02-29T12:00:00+01:00'])(
  'the impossible time %s is refused, with the field that has it',
  async (time) => {
    const encoded = encodeURIComponent(time);
    const event = { type: 'a.b', data: 1, deliver_at: time };
    const calls: [string, Parameters<typeof posthorn.api>][] = [
      ['deliver_at', ['POST', '/v1/events', event]],
      ['filter.since', ['POST', '/v1/dead-letters/replay', { filter: { since: time } }]],
    ];
    for (const list of ['events', 'deliveries', 'dead-letters', 'audit'])
      for (const field of ['since', 'until']) calls.push([field, ['GET', `/v1/${list}?${field}=${encoded}`]]);
    for (const [path, call] of calls) {
      const { body } = await expectStatus(posthorn.api(...call), 422);
      expect(body.errors, call[1]).toMatchObject([{ path }]);
    }
  },
);

describe('the OpenAPI document says what the server refuses', () => {
  const url = URL_OF_NOBODY;
  const secret = (bytes: number) => `whsec_${Buffer.alloc(bytes).toString('base64')}`;
  const slack = { kind: 'slack', url };
  const address = (range: string) => ({ scope: 'read', allowed_ips: [range] });
  const cases: [string, string, object, object][] = [
    ['createEndpoint', 'events[0]', { url, events: ['a.*'] }, { url, events: ['a..b'] }],
    ['createEndpoint', 'tenant', { url, tenant: 'a:b' }, { url, tenant: ':b' }],
    ['createEndpoint', 'secret', { url, secret: secret(24) }, { url, secret: secret(23) }],
    ['createEndpoint', 'secret', { url, secret: secret(64) }, { url, secret: secret(65) }],
    [
      'createEndpoint',
      'signature.header',
      { url, signature: { profile: 'hex', header: 'X-Sig' } },
      { url, signature: { profile: 'hex', header: 'X Sig' } },
    ],
    [
      'createEndpoint',
      'headers.x team',
      { url, headers: { 'x-team': 'a' } },
      { url, headers: { 'x team': 'a' } },
    ],
    [
      'createEndpoint',
      'debounce.key',
      { url, debounce: { key: 'data.id', window_ms: 10 } },
      { url, debounce: { key: 'id', window_ms: 10 } },
    ],
    [
      'createNotifier',
      'events[0]',
      { ...slack, events: ['posthorn.circuit.*'] },
      { ...slack, events: ['a.b'] },
    ],
    ['createKey', 'tenant', { scope: 'tenant', tenant: 'a' }, { scope: 'tenant', tenant: '' }],
    ['createKey', 'allowed_ips[0]', address('2001:db8::/32'), address('localhost')],
    ['createInbox', 'tenant', { tenant: 'a' }, { tenant: 'a b' }],
    ['publishEvent', 'type', { type: 'a.b', data: 1 }, { type: 'posthorn.a', data: 1 }],
    [
      'publishEvent',
      'headers.x y',
      { type: 'a.b', data: 1, headers: { x: 'y' } },
      { type: 'a.b', data: 1, headers: { 'x y': '' } },
    ],
  ];
  test.each(cases)('%s: %s', async (name, path, good, bad) => {
    const contract = new Contract((await posthorn.api('GET', '/openapi.json')).body);
    const operation = contract.operations.find((each) => each.name === name)!;
    expect([contract.allows(operation, good), contract.allows(operation, bad)]).toEqual([true, false]);
    const accepted = await posthorn.api(operation.method, operation.path, good);
    expect([201, 202], accepted.text).toContain(accepted.status);
    const { body } = await expectStatus(posthorn.api(operation.method, operation.path, bad), 422);
    expect(body.errors).toMatchObject([{ path }]);
  });

  test.each([
    ['PUT', '/v1/tenants/{id}', '/v1/tenants/contract-pin', { api_version: 'v2' }, { api_version: '2' }],
    ['POST', '/v1/endpoints/{id}/test', null, { type: 'a.b' }, { type: 'a b' }],
    ['POST', '/v1/endpoints/{id}/rotate-secret', null, { secret: secret(32) }, { secret: 'whsec_x' }],
  ])('%s %s', async (method, path, address, good, bad) => {
    const contract = new Contract((await posthorn.api('GET', '/openapi.json')).body);
    const operation = contract.operations.find((each) => each.method === method && each.path === path)!;
    expect([contract.allows(operation, good), contract.allows(operation, bad)]).toEqual([true, false]);
    const { id } = await createEndpoint(posthorn, { url, tenant: newTenant() });
    const target = address ?? path.replace('{id}', id);
    expect((await posthorn.api(method, target, good)).status).toBeLessThan(300);
    await expectStatus(posthorn.api(method, target, bad), 422);
  });
});

describe('one answer names all errors', () => {
  const pathsOf = ({ body }: { body: { errors: { path: string }[] } }) =>
    body.errors.map(({ path }) => path).toSorted();
  const wrong = {
    timeout_ms: 5,
    events: ['a..b'],
    filter: { 'data.a': { $unknown: 1 } },
    headers: { host: 'example.com', 'x-kept': '[redacted]' },
    retry: { schedule: [0], base: 1 },
    auth: { type: 'basic', username: 'ann' },
  };

  test('of a new endpoint', async () => {
    const answer = await expectStatus(
      posthorn.api('POST', '/v1/endpoints', { url: 'nowhere', ...wrong }),
      422,
    );
    expect(pathsOf(answer)).toEqual([
      'auth.password',
      'events[0]',
      'filter.data.a.$unknown',
      'headers.host',
      'retry',
      'timeout_ms',
      'url',
    ]);
  });

  test('of a change, without errors that only the stored settings could cause', async () => {
    const { id } = await createEndpoint(posthorn, {
      url: URL_OF_NOBODY,
      tenant: newTenant(),
      headers: { 'x-kept': 'a' },
    });
    const answer = await expectStatus(
      posthorn.api('PATCH', `/v1/endpoints/${id}`, { ...wrong, filter: null, auth: null }),
      422,
    );
    expect(pathsOf(answer)).toEqual(['events[0]', 'headers.host', 'retry', 'timeout_ms']);
  });
});

describe('HTTP semantics', () => {
  test('Allow lists only methods that exist at this address', async () => {
    for (const [path, allow] of [
      ['/v1/events/batch', 'POST'],
      ['/v1/keys/current', 'GET, HEAD'],
      ['/v1/dead-letters/replay', 'POST'],
      ['/v1/tenants/acme', 'DELETE, GET, HEAD, PUT'],
    ] as const) {
      const answer = await expectStatus(posthorn.api('OPTIONS', path), 405);
      expect([path, answer.headers.allow]).toEqual([path, allow]);
    }
  });

  test('QUERY is 405 with and without a body', async () => {
    const head = `QUERY /v1/events HTTP/1.1\r\nhost: posthorn\r\nauthorization: Bearer ${ADMIN_KEY}\r\n`;
    for (const rest of [
      'content-length: 0\r\n\r\n',
      'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
    ]) {
      const { answers } = await exchange(posthorn.url, head + rest);
      expect(answers[0]).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } });
    }
  });

  test('If-None-Match takes lists, weak tags and *', async () => {
    for (const path of ['/openapi.json', '/docs', '/console']) {
      const get = (tag: string) =>
        posthorn.api('GET', path, undefined, { headers: { 'if-none-match': tag } });
      const { etag } = (await posthorn.api('GET', path)).headers;
      if (path === '/console' && etag === undefined) continue; // It is not built.
      for (const tag of [`${etag}`, `W/${etag}`, `"other", ${etag}`, `W/"other",W/${etag}`, '*'])
        expect([path, tag, (await get(tag)).status]).toEqual([path, tag, 304]);
      for (const tag of ['"other"', 'W/"other"', '"*"', 'nonsense']) await expectStatus(get(tag), 200);
    }
  });

  test.each(['0x10', '1e2', '+5', '0b11', ' 5', '5.0', '05', '5 '])('limit=%s is refused', async (limit) => {
    const path = `/v1/events?limit=${encodeURIComponent(limit)}`;
    const { body } = await expectStatus(posthorn.api('GET', path), 422);
    expect(body.errors).toMatchObject([{ path: 'limit' }]);
  });

  test('an invalid traceparent is ignored, as its description says', async () => {
    const event = { type: 'a.b', data: 1, tenant: newTenant() };
    const headers = { traceparent: 'x'.repeat(80) };
    await expectStatus(posthorn.api('POST', '/v1/events', event, { headers }), 202);
    const { body } = await posthorn.api('GET', '/openapi.json');
    const parameters = body.paths['/v1/events'].post.parameters as { name: string; schema: object }[];
    expect(parameters.find(({ name }) => name === 'traceparent')?.schema).toEqual({ type: 'string' });
  });

  test('the OpenAPI document has the forms of ids and times that filters take', async () => {
    const { body } = await posthorn.api('GET', '/openapi.json');
    const parameters = body.paths['/v1/deliveries'].get.parameters as {
      name: string;
      schema: { pattern?: string };
    }[];
    const pattern = (name: string) =>
      new RegExp(parameters.find((parameter) => parameter.name === name)?.schema.pattern ?? '^$');
    const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    for (const [name, good, bad] of [
      ['since', '2027-01-31T12:00:00.5+01:00', '2027-13-31T12:00:00Z'],
      ['until', '2027-01-31T12:00:00Z', 'yesterday'],
      ['endpoint_id', id, 'ep_1'],
    ] as const) {
      expect([name, pattern(name).test(good), pattern(name).test(bad)]).toEqual([name, true, false]);
      await expectStatus(posthorn.api('GET', `/v1/deliveries?${name}=${encodeURIComponent(good)}`), 200);
      await expectStatus(posthorn.api('GET', `/v1/deliveries?${name}=${bad}`), 422);
    }
  });
});

describe('filters of lists', () => {
  test('endpoints are found by their ids, and by a text in their description or URL', async () => {
    const tenant = newTenant();
    const create = async (description: string, url: string): Promise<string> =>
      (await createEndpoint(posthorn, { tenant, description, url })).id;
    const orders = await create('Orders to the Warehouse', 'https://example.com/a');
    const invoices = await create('Invoices', 'https://example.com/Warehouse');
    await create('100%', 'https://example.com/c');
    const idsOf = async (query: string): Promise<string[]> =>
      (await expectStatus(posthorn.api('GET', `/v1/endpoints?tenant=${tenant}&${query}`), 200)).body.data.map(
        ({ id }: { id: string }) => id,
      );
    expect(await idsOf('q=warehouse')).toEqual([invoices, orders]);
    expect(await idsOf('q=warehouse&limit=1')).toEqual([invoices]);
    expect(await idsOf('q=%25')).toHaveLength(1);
    expect(await idsOf(`ids=${orders}`)).toEqual([orders]);
    expect(await idsOf(`ids=${orders},ep_00000000000000000000000000,${invoices}`)).toEqual([
      invoices,
      orders,
    ]);
    const { body: other } = await posthorn.api('POST', '/v1/keys', { scope: 'read', tenant: newTenant() });
    const asOther = await posthorn.api('GET', `/v1/endpoints?ids=${orders}`, undefined, { key: other.key });
    expect(asOther.body.data).toEqual([]);
    for (const query of ['ids=', 'ids=ep_1', `ids=${orders},`, 'q='])
      await expectStatus(posthorn.api('GET', `/v1/endpoints?${query}`), 422);
  });

  test('requests to an inbox and failures of payloads are selected by time', async () => {
    const { body: inbox } = await expectStatus(posthorn.api('POST', '/v1/inboxes', {}), 201);
    await fetch(inbox.url, { method: 'POST', body: 'x' });
    const type = `${newTenant().replace('tenant', 'thing')}.created`;
    const schema = { type: 'object' };
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { schema, validation: 'strict' }), 201);
    await expectStatus(posthorn.api('POST', '/v1/events', { type, data: 1 }), 422);
    for (const path of [`/v1/inboxes/${inbox.token}/requests`, `/v1/event-types/${type}/failures`]) {
      const count = async (query: string): Promise<number> =>
        (await expectStatus(posthorn.api('GET', `${path}?${query}`), 200)).body.data.length;
      await eventually(`${path} has one`, async () => (await count('')) === 1);
      expect(await count('since=2020-01-01T00:00:00Z&until=2120-01-01T00:00:00Z'), path).toBe(1);
      expect(await count('since=2120-01-01T00:00:00Z'), path).toBe(0);
      expect(await count('until=2020-01-01T00:00:00Z'), path).toBe(0);
      await expectStatus(posthorn.api('GET', `${path}?since=yesterday`), 422);
    }
  });
});
