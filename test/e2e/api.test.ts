import { describe, expect, test } from 'vitest';
import {
  type Answer,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();

describe('every answer', () => {
  test('has a unique x-request-id', async () => {
    const answers: Answer[] = [];
    for (const path of ['/healthz', '/readyz', '/v1/endpoints', '/v1/nonsense', '/nowhere']) {
      answers.push(await posthorn.api('GET', path));
    }
    answers.push(await posthorn.api('POST', '/v1/events', 'nonsense'));
    answers.push(await posthorn.api('GET', '/v1/endpoints', undefined, { key: null }));
    answers.push(await posthorn.api('POST', '/v1/events', { type: 'a.b', data: 1, tenant: newTenant() }));
    const ids = answers.map(({ headers }) => headers['x-request-id']);
    for (const id of ids) expect(id).toMatch(/^req_[0-9a-z]{26}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('that is an error has the type application/problem+json', async () => {
    const answers = {
      400: await posthorn.api('POST', '/v1/endpoints', '{"url":'),
      401: await posthorn.api('GET', '/v1/endpoints', undefined, { key: 'phk_wrong' }),
      404: await posthorn.api('GET', '/v1/endpoints/ep_00000000000000000000000000'),
      415: await posthorn.api('POST', '/v1/endpoints', 'x', { headers: { 'content-type': 'text/html' } }),
      422: await posthorn.api('POST', '/v1/endpoints', { url: 5, colour: 'red' }),
    };
    for (const [status, answer] of Object.entries(answers)) {
      expect(answer.status, answer.text).toBe(Number(status));
      expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(answer.body).toEqual({
        type: `urn:posthorn:problem:${answer.body.code}`,
        title: expect.any(String),
        status: Number(status),
        detail: expect.any(String),
        code: expect.stringMatching(/^[a-z_]+$/),
        errors: expect.any(Array),
        request_id: answer.headers['x-request-id'],
      });
    }
    expect(answers[422].body.errors).toEqual([
      { path: 'colour', message: 'is not a field of this request' },
      { path: 'url', message: 'must be string' },
    ]);
  });

  test('is 404 for unknown paths, ids of another kind and invalid ids', async () => {
    for (const path of [
      '/v1/unknown',
      '/v2/endpoints',
      '/v1/endpoints/nonsense',
      '/v1/endpoints/dlv_00000000000000000000000000',
      '/v1/deliveries/ep_00000000000000000000000000',
      '/v1/deliveries/dlv_00000000000000000000000000/attempts',
      `/v1/endpoints/${'x'.repeat(180)}`,
      '/v1/endpoints/%00',
    ]) {
      const answer = await posthorn.api('GET', path);
      expect(answer.body, path).toMatchObject({ status: 404, code: 'not_found' });
    }
  });
});

describe('lists', () => {
  interface Page {
    data: { id: string }[];
    next_cursor: string | null;
  }
  const page = async (path: string): Promise<Page> =>
    (await expectStatus(posthorn.api('GET', path), 200)).body;
  const join = (path: string, cursor: string | null) =>
    cursor === null ? path : `${path}${path.includes('?') ? '&' : '?'}cursor=${cursor}`;

  /** Walks all pages, newest first, with something happening between any two. */
  async function walk(path: string, between: () => Promise<unknown> = async () => {}): Promise<string[]> {
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { data, next_cursor }: Page = await page(join(path, cursor));
      seen.push(...data.map(({ id }) => id));
      cursor = next_cursor;
      await between();
    } while (cursor !== null);
    return seen;
  }

  test('endpoints are listed newest first, without overlaps or gaps while more are created', async () => {
    const tenant = newTenant();
    const make = async () => (await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant })).id;
    const made: string[] = [];
    for (let n = 0; n < 12; n += 1) made.push(await make());
    expect(await walk(`/v1/endpoints?tenant=${tenant}&limit=5`, make)).toEqual(made.toReversed());
    expect((await page(`/v1/endpoints?tenant=${tenant}`)).next_cursor).toBeNull();
  });

  test('deliveries are listed without overlaps or gaps while they are added and settled', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    await createEndpoint(posthorn, { url: receiver.url, tenant, retry: { schedule: [0] } });
    const post = async () => {
      const ids = Array.from({ length: 4 }, () => publish(posthorn, { tenant, type: 'a.b', data: 1 }));
      return (await Promise.all(ids)).map(({ id }) => id);
    };
    // Some wait, some are delivered, some are dead; and while the pages are read they go from one to the other.
    receiver.answer(({ index }) => ({ status: [200, 503, 404][index % 3]! }));
    const events = [...(await post()), ...(await post()), ...(await post())];
    const seen = await walk(`/v1/deliveries?tenant=${tenant}&limit=5`, post);
    expect(new Set(seen).size, 'no overlap').toBe(seen.length);
    const all = new Map<string, string>();
    for (const id of await walk(`/v1/deliveries?tenant=${tenant}&limit=250`)) {
      all.set(id, (await posthorn.api('GET', `/v1/deliveries/${id}`)).body.event_id);
    }
    const wanted = [...all].filter(([, event]) => events.includes(event)).map(([id]) => id);
    expect(wanted).toHaveLength(24);
    expect(seen.filter((id) => wanted.includes(id)).toSorted()).toEqual(wanted.toSorted());
    expect(seen).toEqual(seen.toSorted().toReversed());
  });

  test('keys are listed without overlaps or gaps', async () => {
    const tenant = newTenant();
    const make = async () =>
      (await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201)).body.id;
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1) made.push(await make());
    expect(await walk(`/v1/keys?tenant=${tenant}&limit=2`, make)).toEqual(made.toReversed());
  });

  test('an exactly full page can be the last one', async () => {
    const tenant = newTenant();
    for (let n = 0; n < 4; n += 1) await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant });
    const first = await page(`/v1/endpoints?tenant=${tenant}&limit=2`);
    const second = await page(join(`/v1/endpoints?tenant=${tenant}&limit=2`, first.next_cursor));
    expect([first.data.length, second.data.length, second.next_cursor]).toEqual([2, 2, null]);
  });

  test.each(['/v1/endpoints', '/v1/deliveries', '/v1/keys'])('%s: a bad cursor is 400', async (path) => {
    for (const cursor of ['nonsense', 'evt_00000000000000000000000000', '', '%00', `ep_${'z'.repeat(26)}`]) {
      const answer = await posthorn.api('GET', `${path}?cursor=${cursor}`);
      expect(answer.body, cursor).toMatchObject({
        status: 400,
        code: 'bad_cursor',
        errors: [{ path: 'cursor' }],
      });
    }
  });

  test.each(['0', '251', '-1', '1.5', 'many', ''])('limit=%s is 422', async (limit) => {
    const answer = await posthorn.api('GET', `/v1/endpoints?limit=${limit}`);
    expect(answer.body).toMatchObject({ status: 422, errors: [{ path: 'limit' }] });
  });

  test.each([
    ['/v1/events?type=order.*', 'type', /exact event type.*wildcards/],
    ['/v1/stats?type=order.*', 'type', /exact event type.*wildcards/],
    ['/v1/events?tenant=', 'tenant', /1 to 128/],
    ['/v1/audit?tenant=a%20b', 'tenant', /1 to 128/],
    ['/v1/audit?action=foo', 'action', /one of "endpoint.create", /],
  ])('%s could never match anything and is refused', async (path, field, message) => {
    const { body } = await expectStatus(posthorn.api('GET', path), 422);
    expect(body.errors).toEqual([{ path: field, message: expect.stringMatching(message) }]);
  });

  test('unknown filters are refused, and known filters apply', async () => {
    await expectStatus(posthorn.api('GET', '/v1/deliveries?colour=red'), 422);
    await expectStatus(posthorn.api('GET', '/v1/deliveries?status=lost'), 422);
    await expectStatus(posthorn.api('GET', '/v1/deliveries?since=yesterday'), 422);
    await expectStatus(posthorn.api('GET', '/v1/deliveries?endpoint_id=nonsense'), 422);

    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    receiver.answer((request) => ({ status: request.json().data === 'bad' ? 404 : 200 }));
    const good = await publish(posthorn, { tenant, type: 'a.good', data: 'good' });
    const bad = await publish(posthorn, { tenant, type: 'a.bad', data: 'bad' });
    await untilDeliveries(posthorn, good.id, 'delivered');
    await untilDeliveries(posthorn, bad.id, 'dead');
    const found = async (query: string) =>
      (await page(`/v1/deliveries?tenant=${tenant}&${query}`)).data.map(
        (delivery) => (delivery as unknown as { event_id: string }).event_id,
      );
    expect(await found(`endpoint_id=${endpoint.id}`)).toEqual([bad.id, good.id]);
    expect(await found('status=dead')).toEqual([bad.id]);
    expect(await found('type=a.good')).toEqual([good.id]);
    expect(await found(`since=${bad.created_at}`)).toContain(bad.id);
    expect(await found(`until=${good.created_at}`)).toEqual([]);
    expect(await found(`event_id=${good.id}&status=dead`)).toEqual([]);
  });
});

describe('an endpoint', () => {
  test('is shown with all defaults and changed by a merge patch', async () => {
    const tenant = newTenant();
    const url = 'https://example.com/hook';
    const { id, secret, ...made } = await createEndpoint(posthorn, { url, tenant });
    expect(secret).toMatch(/^whsec_/);
    expect(made).toMatchObject({
      url,
      tenant,
      events: ['*'],
      enabled: true,
      paused: false,
      payload: 'full',
      signature: 'standard',
      retry: {
        schedule: [0, 30, 300, 1800, 7200, 28800, 86400],
        jitter: 'proportional',
        max_age_seconds: 259_200,
      },
      timeout_ms: 15_000,
      max_in_flight: 10,
      rate_limit: null,
      ordering: 'none',
      health: { circuit: 'closed', consecutive_failures: 0, waiting: 0, dead: 0 },
    });
    const patch = async (change: object) =>
      (await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, change), 200)).body;
    await patch({ metadata: { a: 1, b: 2 }, headers: { 'x-a': '1', 'x-b': '2' }, timeout_ms: 2000 });
    expect(await patch({ metadata: { a: null, c: 3 }, headers: { 'x-b': null } })).toMatchObject({
      metadata: { b: 2, c: 3 },
      headers: { 'x-a': '1' },
      timeout_ms: 2000,
    });
    const before = await patch({});
    expect(await patch({ timeout_ms: null })).toMatchObject({ timeout_ms: 15_000 });
    expect(before.timeout_ms).toBe(2000);
  });

  test('can be recreated from its own representation', async () => {
    const settings = {
      url: 'https://example.com/hook',
      tenant: newTenant(),
      description: 'the first',
      events: ['order.*'],
      channels: ['a'],
      filter: { 'data.amount': { $gte: 100 } },
      api_version: '2027-01',
      payload: 'thin',
      headers: { 'X-Shop': 'south' },
      signature: { profile: 'hex', header: 'x-acme', prefix: 'v0=' },
      retry: { base: 1, attempts: 3, permanent: [400, '5xx'] },
      rate_limit: { per_second: 5 },
      ordering: 'fifo',
      fifo_on_dead: 'block',
      follow_redirects: 2,
      timeout_ms: 2000,
      metadata: { team: 'logistics' },
      paused: true,
    };
    for (const given of [settings, { url: settings.url, tenant: settings.tenant }]) {
      const { id: first } = await createEndpoint(posthorn, given);
      const shown = async (id: string) => {
        const { body } = await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200);
        const {
          id: _id,
          created_at,
          updated_at,
          disabled_reason,
          health,
          public_key,
          signing_secrets,
          ...configured
        } = body;
        return configured;
      };
      const configured = await shown(first);
      const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', configured), 201);
      expect(await shown(body.id)).toEqual(configured);
      const { tenant, ...changeable } = configured;
      await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${body.id}`, changeable), 200);
      expect(await shown(body.id)).toEqual(configured);
    }
  });

  test.each(['9xx', 600, null])('explains the allowed statuses instead of %j', async (status) => {
    const retry = { permanent: [404, status] };
    const settings = { url: 'https://example.com/', retry };
    const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 422);
    expect(body.errors).toEqual([
      {
        path: 'retry.permanent[1]',
        message: 'must be a status code from 100 to 599, or one of "1xx", "2xx", "3xx", "4xx", "5xx"',
      },
    ]);
  });

  test.each([
    [{ url: 'http://example.com/' }, 'url_forbidden'],
    [{ url: 'https://10.0.0.1/' }, 'url_forbidden'],
    [{ url: 'https://169.254.169.254/latest/meta-data' }, 'url_forbidden'],
    [{ url: 'https://[::1]/' }, 'url_forbidden'],
    [{ url: 'https://user:pass@example.com/' }, 'url_forbidden'],
    [{ url: 'nonsense' }, 'url_invalid'],
    [{ url: 'ftp://example.com/' }, 'url_invalid'],
    [{ url: 'https://example.com/', events: ['*.created'] }, 'invalid'],
    [{ url: 'https://example.com/', headers: { 'Webhook-Id': 'x' } }, 'invalid'],
    [{ url: 'https://example.com/', timeout_ms: 999 }, 'invalid'],
    [{ url: 'https://example.com/', retry: { schedule: [0], base: 1 } }, 'invalid'],
    [{ url: 'https://example.com/', secret: 'whsec_c2hvcnQ=' }, 'invalid'],
  ])('is refused if its settings are invalid: %j', async (settings, code) => {
    const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 422);
    expect(body.code, body.detail).toBe(code);
  });

  const oauth = { type: 'oauth2', client_id: 'a', client_secret: 'b', token_url: 'nowhere' };
  test.each([
    // Errors that the schema finds.
    [{ url: 'nonsense', timeout_ms: 999 }, 'invalid', ['url', 'timeout_ms']],
    [{ url: 'ftp://example.com/', timeout_ms: 999 }, 'invalid', ['url', 'timeout_ms']],
    [{ url: '', timeout_ms: 999 }, 'invalid', ['url', 'timeout_ms']],
    [{ url: 'nonsense', events: ['*.created'] }, 'invalid', ['url', 'events[0]']],
    [
      { url: 'https://example.com/', events: ['*.created'], auth: oauth },
      'invalid',
      ['auth.token_url', 'events[0]'],
    ],
    // Errors that the control plane finds.
    [{ url: 'https://10.0.0.1/', auth: oauth }, 'url_forbidden', ['url', 'auth.token_url']],
  ])('is refused with all errors at once, those of its URL included: %j', async (settings, code, paths) => {
    const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant: newTenant() });
    for (const [method, path] of [
      ['POST', '/v1/endpoints'],
      ['PATCH', `/v1/endpoints/${id}`],
    ] as const) {
      const { body } = await expectStatus(posthorn.api(method, path, settings), 422);
      expect(body.code, body.detail).toBe(code);
      expect(body.errors.map((error: { path: string }) => error.path).toSorted()).toEqual(paths.toSorted());
    }
  });
});
