/** Details of the HTTP API that clients rely on: what is refused, and that a refused request changes nothing. */
import { describe, expect, test } from 'vitest';
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
