import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ env: { POSTHORN_MAX_BATCH_BYTES: '1MiB' } });

const eventBody = (tenant: string, data: string): string =>
  `{"tenant":"${tenant}","type":"order.created","data":${data}}`;

describe('ACC-5: data reaches the receiver byte for byte', () => {
  const written = {
    'key order, also of keys that look like numbers': '{"b":1,"a":2,"10":3,"9":4}',
    'integers beyond 2^53': '{"id":9007199254740993,"n":-12345678901234567890123456789}',
    'numbers as they were written': '[1.10, 1e2, 1E+02, 0.0, -0, 1.0e-7]',
    'unicode escapes, also of half a character':
      '{"a":"\\u00e9\\u0041\\ud83d\\ude00","lone":"\\ud800","nul":"\\u0000"}',
    'characters beyond ASCII': '{"é":"日本語 😀 \u2028"}',
    'space between the tokens': '{  "a" :\t[ 1 ,\n 2 ]\r\n}',
    'escaped slashes and quotes': '{"a":"\\/ \\" \\\\ \\b\\f\\n\\r\\t /"}',
    'the same key twice': '{"a":1,"a":2}',
    'a text': '"just text"',
    'a number': '1.50',
    null: 'null',
    'an empty object': '{ }',
  };

  test.each(Object.entries(written))('%s', async (_what, data) => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.01], jitter: 'none' },
    });
    // The first attempt takes the bytes from memory, the second one reads them from the database.
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const event = await publish(posthorn, eventBody(tenant, data));
    const requests = await receiver.waitFor(2);
    const envelope = `{"id":"${event.id}","type":"order.created","timestamp":"${event.created_at}","data":`;
    for (const request of requests) expect(request.body.toString()).toBe(`${envelope}${data}}`);
    const shown = await posthorn.api('GET', `/v1/events/${event.id}`);
    expect(shown.text.endsWith(`"data":${data}}`), 'and so it is shown').toBe(true);
  });

  test('data of the largest allowed size reaches the receiver byte for byte', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const data = `"${'ä'.repeat((256 * 1024 - 2) / 2)}"`;
    expect(Buffer.byteLength(data)).toBe(256 * 1024);
    await publish(posthorn, eventBody(tenant, data));
    const [request] = await receiver.waitFor(1);
    expect(request!.body.toString().endsWith(`"data":${data}}`)).toBe(true);
  });
});

test('ACC-6: an event that matches no endpoint is stored, with zero deliveries', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['invoice.*'] });
  const event = await publish(posthorn, { tenant, type: 'order.created', data: { n: 1 } });
  expect(event).toMatchObject({ deliveries: 0, duplicate: false, tenant, type: 'order.created' });
  expect(await deliveriesOf(posthorn, event.id)).toEqual([]);
  const shown = await expectStatus(posthorn.api('GET', `/v1/events/${event.id}`), 200);
  expect(shown.body).toMatchObject({
    id: event.id,
    tenant,
    type: 'order.created',
    deliveries: 0,
    data: { n: 1 },
  });
  const list = await expectStatus(posthorn.api('GET', `/v1/events?tenant=${tenant}`), 200);
  expect(list.body.data).toMatchObject([{ id: event.id, deliveries: 0 }]);
  expect(receiver.requests).toHaveLength(0);
});

describe('ACC-7: refused requests', () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

  const refused: [what: string, body: (tenant: string) => string | Buffer, expected: object][] = [
    [
      'data beyond 256 KiB',
      (tenant) => eventBody(tenant, `"${'x'.repeat(256 * 1024 - 1)}"`),
      { status: 413, code: 'too_large', errors: [{ path: 'data' }] },
    ],
    [
      'a body beyond any event',
      (tenant) => eventBody(tenant, `"${'x'.repeat(2 * 1024 * 1024)}"`),
      {
        status: 413,
        code: 'too_large',
        detail: expect.stringMatching(/larger than 327680 bytes.*Send less/),
        errors: [{ path: 'body' }],
      },
    ],
    [
      'nesting beyond 64 levels',
      (tenant) => eventBody(tenant, nested(65)),
      { status: 422, code: 'invalid', errors: [{ path: 'data', message: 'nested deeper than 64 levels' }] },
    ],
    [
      'nesting that would exhaust a stack',
      (tenant) => eventBody(tenant, nested(100_000)),
      { status: 422, code: 'invalid' },
    ],
    [
      'malformed JSON, with the position',
      (tenant) => `{"tenant":"${tenant}",\n "type":"a.b",\n "data": {"a": 01}}`,
      { status: 400, code: 'malformed_json', detail: expect.stringContaining('line 3, column 17') },
    ],
    [
      'a body that ends too early',
      () => '{"type":"a.b","data":{"a":1}',
      { status: 400, code: 'malformed_json', detail: expect.stringContaining('unexpected end of JSON') },
    ],
    [
      'something after the body',
      (tenant) => `${eventBody(tenant, '1')} 2`,
      { status: 400, code: 'malformed_json' },
    ],
    ['a trailing comma', (tenant) => eventBody(tenant, '[1,]'), { status: 400, code: 'malformed_json' }],
    [
      'bytes that are not UTF-8',
      (tenant) => Buffer.from(eventBody(tenant, '"\xff"'), 'latin1'),
      { status: 400, code: 'malformed_json', detail: 'The body is not valid UTF-8.' },
    ],
    ['an empty body', () => '', { status: 400, code: 'malformed_json' }],
    [
      'what is not JSON at all',
      () => 'type=a.b&data=1',
      { status: 400, code: 'malformed_json', detail: expect.stringContaining('line 1, column 1') },
    ],
    [
      'unknown fields, by name',
      (tenant) => `{"tenant":"${tenant}","type":"a.b","data":1,"payload":1,"kind":2}`,
      { status: 422, code: 'invalid', errors: [{ path: 'payload' }, { path: 'kind' }] },
    ],
    [
      'a field that stands there twice',
      (tenant) => `{"tenant":"${tenant}","type":"a.b","data":1,"data":2}`,
      { status: 400, code: 'malformed_json', detail: expect.stringContaining('"data"') },
    ],
    ['no type', () => '{"data":1}', { status: 422, errors: [{ path: 'type', message: 'is required' }] }],
    ['no data', () => '{"type":"a.b"}', { status: 422, errors: [{ path: 'data' }] }],
    ['a type that is none', () => '{"type":"a b","data":1}', { status: 422, errors: [{ path: 'type' }] }],
    [
      'a type of Posthorn’s own',
      () => '{"type":"posthorn.endpoint.disabled","data":1}',
      { status: 422, errors: [{ path: 'type' }] },
    ],
    ['a list', () => '[]', { status: 422, code: 'invalid' }],
    [
      'several things wrong at once: all are named',
      () => '{"type":1,"data":1,"deliver_at":"soon","headers":{"webhook-id":"x"}}',
      { status: 422, errors: [{ path: 'type' }, { path: 'deliver_at' }, { path: 'headers.webhook-id' }] },
    ],
  ];

  test.each(refused)('%s', async (_what, body, expected) => {
    const tenant = newTenant();
    const answer = await posthorn.api('POST', '/v1/events', body(tenant));
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.body).toMatchObject(expected);
    expect(answer.status).toBe(answer.body.status);
    const stored = await posthorn.database.query('select from posthorn.events where tenant = $1', [tenant]);
    expect(stored, 'nothing is half-written').toHaveLength(0);
  });

  test('nesting of 64 levels is accepted', async () => {
    await publish(posthorn, eventBody(newTenant(), nested(64)));
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/xml'])(
    'a content type that is not JSON: %s',
    async (type) => {
      const headers = { 'content-type': type };
      const answer = await posthorn.api('POST', '/v1/events', eventBody(newTenant(), '1'), { headers });
      expect(answer.body).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    },
  );

  test('endpoint_ids must not name an unknown endpoint or one of another tenant', async () => {
    const receiver = await newReceiver();
    const [tenant, other] = [newTenant(), newTenant()];
    const theirs = await createEndpoint(posthorn, { url: receiver.url, tenant: other });
    const event = { tenant, type: 'a.b', data: 1, endpoint_ids: [theirs.id] };
    const answer = await expectStatus(posthorn.api('POST', '/v1/events', event), 422);
    expect(answer.body.errors).toMatchObject([{ path: 'endpoint_ids[0]' }]);
  });
});

describe('ACC-3: batches', () => {
  test('each event gets a result, in order, and an invalid one does not affect the others', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const events = [
      { tenant, type: 'order.created', data: { n: 1 } },
      { tenant, type: 'not a type', data: { n: 2 } },
      { tenant, type: 'order.created', data: 'x'.repeat(256 * 1024) },
      { tenant, type: 'order.created', data: { n: 4 }, unknown: true },
      { tenant, type: 'order.paid', data: { n: 5 } },
    ];
    const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    expect(body.results).toMatchObject([
      { id: expect.stringMatching(/^evt_/), type: 'order.created', deliveries: 1, duplicate: false },
      { error: { status: 422, code: 'invalid', errors: [{ path: 'type' }] } },
      { error: { status: 413, code: 'too_large' } },
      { error: { status: 422, errors: [{ path: 'unknown' }] } },
      { id: expect.stringMatching(/^evt_/), type: 'order.paid', deliveries: 1 },
    ]);
    const requests = await receiver.waitFor(2);
    expect(requests.map((request) => request.json().data.n).toSorted()).toEqual([1, 5]);
    await untilDeliveries(posthorn, body.results[0].id, 'delivered');
  });

  test.each([
    ['waiting', 'queue', {}, null],
    ['waiting', 'queue', {}, 'key'],
    ['skipped', 'deliveries', { enabled: false }, null],
    ['skipped', 'deliveries', { enabled: false }, 'key'],
  ])(
    '%s deliveries (%s) of a batch have the tenant and type of their own event: %j, key %s',
    async (_, table, change, key) => {
      const tenants = [newTenant(), newTenant(), newTenant()];
      for (const tenant of tenants) {
        const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant });
        await posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: true, ...change });
      }
      const events = Array.from({ length: 30 }, (_each, n) => ({
        tenant: tenants[n % 3],
        type: `type.${n % 5}`,
        data: n,
        ...(key !== null && { idempotency_key: `${key} ${n}` }),
      }));
      await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
      const rows = await posthorn.database.query<{ tenant: string; type: string; n: string }>(
        `select q.tenant, q.event_type as type, convert_from(e.data, 'UTF8') as n
         from posthorn.${table} q join posthorn.events e on e.id = posthorn.event_of_delivery(q.id)
        where e.tenant = any ($1) order by convert_from(e.data, 'UTF8')::int`,
        [tenants],
      );
      expect(rows).toEqual(events.map(({ tenant, type, data }) => ({ tenant, type, n: String(data) })));
    },
  );

  test('a batch may have 1 to 1,000 events', async () => {
    const tenant = newTenant();
    const events = Array.from({ length: 1000 }, (_, n) => ({ tenant, type: 'a.b', data: n }));
    const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    expect(new Set(body.results.map(({ id }: { id: string }) => id)).size).toBe(1000);
    const tooMany = [...events, events[0]];
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events: tooMany }), 422);
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events: [] }), 422);
    const [stored] = await posthorn.database.query(
      'select count(*)::int as n from posthorn.events where tenant = $1',
      [tenant],
    );
    expect(stored).toEqual({ n: 1000 });
  });

  test('a body that is too large, malformed or not a batch is refused as a whole', async () => {
    const large = { events: [{ type: 'a.b', data: 'x'.repeat(1024 * 1024) }] };
    await expectStatus(posthorn.api('POST', '/v1/events/batch', large), 413);
    await expectStatus(posthorn.api('POST', '/v1/events/batch', '{"events":[{"type":"a.b","data":1}'), 400);
    await expectStatus(posthorn.api('POST', '/v1/events/batch', 'nonsense'), 400);
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { type: 'a.b', data: 1 }), 422);
    await expectStatus(posthorn.api('POST', '/v1/events/batch', '[]'), 422);
  });
});

describe('ACC-9: deliver_at, endpoint_ids and other options of an event', () => {
  test('endpoint_ids selects endpoints, whatever they subscribe to', async () => {
    const [one, two] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const chosen = await createEndpoint(posthorn, { url: one.url, tenant, events: ['other.type'] });
    await createEndpoint(posthorn, { url: two.url, tenant });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1, endpoint_ids: [chosen.id] });
    expect(event.deliveries).toBe(1);
    await one.waitFor(1);
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(two.requests).toHaveLength(0);
  });

  test('an event is not sent before deliver_at', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const at = Date.now() + 700;
    const deliver_at = new Date(at).toISOString();
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1, deliver_at });
    const [waiting] = await deliveriesOf(posthorn, event.id);
    expect(waiting).toMatchObject({ status: 'pending', next_attempt_at: deliver_at });
    const [request] = await receiver.waitFor(1);
    expect(request!.at).toBeGreaterThanOrEqual(at - 5);
    expect(request!.at).toBeLessThan(at + 5000);
  });

  test('deliver_at is refused if a FIFO endpoint is named, and ignored by FIFO endpoints that subscribe', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const free = await createEndpoint(posthorn, { url: `${receiver.url}/free`, tenant });
    const fifo = await createEndpoint(posthorn, { url: `${receiver.url}/fifo`, tenant, ordering: 'fifo' });
    const event = {
      tenant,
      type: 'a.b',
      data: 1,
      deliver_at: new Date(Date.now() + 3_600_000).toISOString(),
    };
    const named = { ...event, endpoint_ids: [free.id, fifo.id] };
    const refused = await expectStatus(posthorn.api('POST', '/v1/events', named), 422);
    expect(refused.body).toMatchObject({ code: 'invalid', errors: [{ path: 'deliver_at' }] });
    expect(refused.body.detail).toContain(`endpoint_ids[1] (${fifo.id}) is a FIFO endpoint`);
    expect(refused.body.detail).toContain('leave out deliver_at or that endpoint');
    const batch = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events: [named] }), 202);
    expect(batch.body.results[0].error).toMatchObject({ errors: [{ path: 'deliver_at' }] });

    await publish(posthorn, event);
    expect((await receiver.waitFor(1))[0]!.path).toBe('/fifo');
    await publish(posthorn, { ...named, deliver_at: new Date(Date.now() - 1000).toISOString() });
    await receiver.waitFor(3);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${fifo.id}`, { ordering: null }), 200);
    await publish(posthorn, named);
  });
});
