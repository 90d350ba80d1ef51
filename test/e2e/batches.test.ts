/** FAN-4: one request carries several events. */
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';
import type { RecordedRequest, Reply } from '../support/receiver.ts';

const posthorn = usePosthorn({ inProcess: true });

const RETRY = { schedule: [0, 0.2, 0.2], jitter: 'none' };
const idsIn = (request: RecordedRequest): string[] =>
  request.json().events.map((event: { id: string }) => event.id);
const dataIn = (request: RecordedRequest): unknown[] =>
  request.json().events.map((event: { data: unknown }) => event.data);

const publishMany = (by: Pick<TestPosthorn, 'api'>, tenant: string, data: readonly unknown[]) =>
  publishAll(by, { tenant, type: 'a.b', data });

async function newBatchEndpoint(batch: object, settings: object = {}) {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const endpoint = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    retry: RETRY,
    batch,
    ...settings,
  });
  return { receiver, tenant, endpoint };
}

const batchResult = (failed: readonly string[], status = 200): Reply => ({
  status,
  headers: { 'content-type': 'application/vnd.posthorn.batch-result+json; charset=utf-8' },
  body: JSON.stringify({ failed }),
});

describe('FAN-4: batches', () => {
  test('a full batch is sent at once, the rest when its oldest event has waited long enough', async () => {
    const { receiver, tenant, endpoint } = await newBatchEndpoint({ max_events: 3, max_wait_ms: 300 });
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 4]);
    const [full, rest] = await receiver.waitFor(2);
    expect([idsIn(full!), idsIn(rest!)]).toEqual([ids.slice(0, 3), ids.slice(3)]);
    const batchId = full!.json().id;
    expect(batchId).toMatch(/^bat_/);
    expect(full!.headers).toMatchObject({
      'webhook-id': batchId,
      'posthorn-batch': '3',
      'posthorn-attempt': '1',
    });
    expect(full!.headers['posthorn-delivery']).toBeUndefined();
    const headers = full!.headers as Record<string, string>;
    expect(new Webhook(endpoint.secret).verify(full!.body, headers)).toEqual(full!.json());
    expect(full!.json().events[0]).toMatchObject({ id: ids[0], type: 'a.b', data: 1 });
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');

    const [delivery] = await deliveriesOf(posthorn, ids[1]!);
    expect(delivery).toMatchObject({ batch_id: batchId, attempts: 1 });
    const [attempt] = await attemptsOf(posthorn, delivery!.id);
    expect(attempt).toMatchObject({ batch_id: batchId, request_headers: { 'webhook-id': batchId } });
    const { body: batch } = await expectStatus(posthorn.api('GET', `/v1/batches/${batchId}`), 200);
    expect(batch.deliveries.map((each: { event_id: string }) => each.event_id)).toEqual(ids.slice(0, 3));
    const sent = await posthorn.api('GET', `/v1/deliveries/${delivery!.id}/attempts/1/request`);
    expect(sent.text).toBe(full!.body.toString());
    await expectStatus(posthorn.api('GET', '/v1/batches/bat_00000000000000000000000000'), 404);
  });

  test('VER-2: a batch announces the earliest end of the types and versions of its events', async () => {
    const putType = (path: string, body: object) =>
      expectStatus(posthorn.api('PUT', `/v1/event-types/${path}`, body), 201);
    await putType('ending.type', { deprecated: true, sunset_at: '2031-01-01T00:00:00Z' });
    await putType('ending.version/versions/v1', { status: 'deprecated', sunset_at: '2030-01-01T00:00:00Z' });
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 3, max_wait_ms: 60_000 });
    const send = async (...types: string[]) => {
      const count = receiver.requests.length;
      const events = types.map((type) => ({ type, tenant, data: 1 }));
      await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
      return (await receiver.waitFor(count + 1))[count]!.headers;
    };
    // Until the process knows the catalogue.
    await eventually('the ends are announced', async () => {
      const { sunset } = await send('ending.type', 'a.b', 'ending.version');
      return sunset === 'Tue, 01 Jan 2030 00:00:00 GMT';
    });
    expect(await send('a.b', 'ending.type', 'a.b')).toMatchObject({
      deprecation: expect.stringMatching(/^@\d{10}$/),
      sunset: 'Wed, 01 Jan 2031 00:00:00 GMT',
    });
    const plain = await send('a.b', 'a.b', 'a.b');
    expect([plain.deprecation, plain.sunset]).toEqual([undefined, undefined]);
  });

  test('a batch never exceeds max_bytes, and a larger event goes alone', async () => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 100, max_wait_ms: 0, max_bytes: 4096 });
    const sizes = [1500, 1500, 1500, 9000, 10];
    const ids = await publishMany(
      posthorn,
      tenant,
      sizes.map((size) => 'x'.repeat(size)),
    );
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    expect(receiver.requests.flatMap(idsIn).toSorted()).toEqual(ids.toSorted());
    for (const request of receiver.requests)
      if (idsIn(request).length > 1) expect(request.body.length).toBeLessThanOrEqual(4096);
    expect(receiver.requests.filter((request) => idsIn(request).includes(ids[3]!)).map(idsIn)).toEqual([
      [ids[3]],
    ]);
  });

  test('a retry has the same events in the same order under the same id', async () => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 5, max_wait_ms: 200 });
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 4, 5]);
    const [first, second] = await receiver.waitFor(2);
    expect(second!.body.equals(first!.body)).toBe(true);
    expect(second!.headers).toMatchObject({
      'webhook-id': first!.headers['webhook-id'],
      'posthorn-attempt': '2',
      'posthorn-retry-reason': 'http_5xx',
    });
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    expect(receiver.requests).toHaveLength(2);
  });

  test('only the events that the receiver names are sent again, under a new id', async () => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 4, max_wait_ms: 200 });
    receiver.answer((request) =>
      request.index > 0 ? {} : batchResult([idsIn(request)[1]!, 'evt_unknown', idsIn(request)[3]!], 207),
    );
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 4]);
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    const [first, second] = receiver.requests;
    expect(receiver.requests).toHaveLength(2);
    expect(dataIn(second!)).toEqual([2, 4]);
    expect(second!.json().id).not.toBe(first!.json().id);
    const [failed] = await deliveriesOf(posthorn, ids[1]!);
    const [attempt] = await attemptsOf(posthorn, failed!.id);
    expect(attempt).toMatchObject({
      outcome: 'retry',
      status_code: 207,
      error: { class: 'batch_event_failed' },
    });
    const [fine] = await deliveriesOf(posthorn, ids[0]!);
    expect(fine).toMatchObject({ attempts: 1, status: 'delivered' });
  });

  test.each([
    ['a batch result that cannot be read', { ...batchResult([]), body: '{"failed":' }],
    ['a batch result without the list', { ...batchResult([]), body: '{}' }],
  ])('%s is retried', async (_what, reply) => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 2, max_wait_ms: 0 });
    receiver.answer(({ index }) => (index === 0 ? reply : {}));
    const [id] = await publishMany(posthorn, tenant, [1]);
    await untilDeliveries(posthorn, id!, 'delivered');
    const [delivery] = await deliveriesOf(posthorn, id!);
    expect(await attemptsOf(posthorn, delivery!.id)).toMatchObject([
      { error: { class: 'batch_result_invalid' } },
      { outcome: 'delivered' },
    ]);
  });

  test('a rejected batch is halved until the rejected event is alone: it dies, the others arrive', async () => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 8, max_wait_ms: 300 });
    receiver.answer((request) => ({ status: dataIn(request).includes('poison') ? 422 : 200 }));
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 'poison', 5, 6, 7, 8]);
    for (const [index, id] of ids.entries())
      await untilDeliveries(posthorn, id, index === 3 ? 'dead' : 'delivered');
    // 8 → 4 + 4 → 2 + 2 → 1 + 1
    expect(receiver.requests.map((request) => idsIn(request).length).toSorted()).toEqual([
      1, 1, 2, 2, 4, 4, 8,
    ]);
    expect(new Set(receiver.requests.map((request) => request.json().id)).size).toBe(7);
    const [dead] = await deliveriesOf(posthorn, ids[3]!);
    expect(dead).toMatchObject({ reason: 'rejected', attempts: 4 });
  });

  test('halves do not use up the attempts of the schedule', async () => {
    const { receiver, tenant } = await newBatchEndpoint(
      { max_events: 4, max_wait_ms: 300 },
      { retry: { schedule: [0, 0.1], jitter: 'none' } },
    );
    receiver.answer((request) => {
      if (idsIn(request).length > 1) return { status: 413 };
      return { status: request.headers['posthorn-retry-reason'] === 'http_4xx' ? 503 : 200 };
    });
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 4]);
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
  });

  test('without split_rejected, one rejected event makes the whole batch die', async () => {
    const { receiver, tenant } = await newBatchEndpoint({
      max_events: 3,
      max_wait_ms: 300,
      split_rejected: false,
    });
    receiver.answer({ status: 422 });
    const ids = await publishMany(posthorn, tenant, [1, 2, 3]);
    for (const id of ids) await untilDeliveries(posthorn, id, 'dead');
    expect(receiver.requests).toHaveLength(1);
  });

  test('410 disables the endpoint', async () => {
    const { receiver, tenant, endpoint } = await newBatchEndpoint({ max_events: 2, max_wait_ms: 300 });
    receiver.answer({ status: 410 });
    const ids = await publishMany(posthorn, tenant, [1, 2]);
    for (const id of ids) await untilDeliveries(posthorn, id, 'dead');
    await expect
      .poll(async () => (await posthorn.api('GET', `/v1/endpoints/${endpoint.id}`)).body)
      .toMatchObject({ enabled: false, disabled_reason: 'gone' });
  });

  test('FIFO endpoints get batches in order, and a failed batch holds the next one back', async () => {
    const { receiver, tenant } = await newBatchEndpoint(
      { max_events: 3, max_wait_ms: 100 },
      { ordering: 'fifo' },
    );
    receiver.answer(({ index }) => ({ status: index === 1 ? 503 : 200 }));
    const data = [1, 2, 3, 4, 5, 6, 7];
    const ids = await publishMany(posthorn, tenant, data);
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    expect(receiver.requests.map(dataIn)).toEqual([[1, 2, 3], [4, 5, 6], [4, 5, 6], [7]]);
  });

  test('a rate limit counts requests', async () => {
    const { receiver, tenant } = await newBatchEndpoint(
      { max_events: 50, max_wait_ms: 100 },
      { rate_limit: { per_second: 1, burst: 2 } },
    );
    const ids = await publishMany(
      posthorn,
      tenant,
      Array.from({ length: 100 }, (_, n) => n),
    );
    await receiver.waitFor(2, 1_500);
    expect(receiver.requests.flatMap(idsIn).toSorted()).toEqual(ids.toSorted());
  });

  test('max_in_flight counts requests', async () => {
    const { receiver, tenant } = await newBatchEndpoint(
      { max_events: 3, max_wait_ms: 60_000 },
      { max_in_flight: 2 },
    );
    receiver.hang();
    const ids = await publishMany(posthorn, tenant, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect((await receiver.waitFor(2)).flatMap(idsIn)).toHaveLength(6);
    // Another endpoint is served meanwhile, but this one gets no third request.
    const other = await newBatchEndpoint({ max_wait_ms: 0 });
    await publishMany(posthorn, other.tenant, [1]);
    await other.receiver.waitFor(1);
    expect(receiver.requests).toHaveLength(2);
    receiver.release();
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    expect(receiver.requests).toHaveLength(3);
  });

  test('a replay of one event goes alone, under a new id', async () => {
    const { receiver, tenant } = await newBatchEndpoint({ max_events: 3, max_wait_ms: 300 });
    const ids = await publishMany(posthorn, tenant, [1, 2, 3]);
    for (const id of ids) await untilDeliveries(posthorn, id, 'delivered');
    await expectStatus(posthorn.api('POST', `/v1/events/${ids[1]}/replay`), 202);
    const [first, replay] = await receiver.waitFor(2);
    expect(idsIn(replay!)).toEqual([ids[1]]);
    expect(replay!.json().id).not.toBe(first!.json().id);
    expect(replay!.headers['posthorn-retry-reason']).toBe('replay');
  });

  test.each([
    [{ max_events: 0 }, 'batch.max_events'],
    [{ max_events: 1001 }, 'batch.max_events'],
    [{ max_wait_ms: 60_001 }, 'batch.max_wait_ms'],
    [{ max_bytes: 10 }, 'batch.max_bytes'],
    [{ size: 3 }, 'batch.size'],
  ])('refuses %j', async (batch, path) => {
    const settings = { url: 'https://example.com/', batch };
    const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 422);
    expect(body.errors).toMatchObject([{ path }]);
  });

  test('fills in defaults, and null switches batches off', async () => {
    const { endpoint } = await newBatchEndpoint({});
    const path = `/v1/endpoints/${endpoint.id}`;
    const defaults = { max_events: 100, max_wait_ms: 1000, max_bytes: 1_048_576, split_rejected: true };
    expect((await posthorn.api('GET', path)).body.batch).toEqual(defaults);
    await expectStatus(posthorn.api('PATCH', path, { batch: null }), 200);
    expect((await posthorn.api('GET', path)).body.batch).toBeNull();
  });
});

describe('FAN-4: the estimate of requests', () => {
  const estimate = async (body: object, key?: string) =>
    (
      await expectStatus(
        posthorn.api('POST', '/v1/shaping/estimate', body, key === undefined ? {} : { key }),
        200,
      )
    ).body;

  test('counts the requests that batches and debounce make of the last hour, as many as a receiver really gets', async () => {
    const batch = { max_events: 10, max_wait_ms: 60_000 };
    const { receiver, tenant } = await newBatchEndpoint(batch);
    const orders = Array.from({ length: 60 }, (_, n) => ({ order: n % 6, amount: n }));
    await publishMany(posthorn, tenant, orders);
    expect(await receiver.waitFor(6)).toHaveLength(6);

    expect(await estimate({ tenant, batch })).toMatchObject({
      events: 60,
      requests: 6,
      examined: 60,
      is_complete: true,
    });
    expect(await estimate({ tenant, debounce: { key: 'data.order', window_ms: 60_000 } })).toMatchObject({
      events: 60,
      requests: 6,
    });
    expect(await estimate({ tenant, debounce: { key: 'data.absent', window_ms: 60_000 } })).toMatchObject({
      events: 60,
      requests: 60,
    });
    expect(await estimate({ tenant, batch, filter: { 'data.amount': { $lt: 15 } } })).toMatchObject({
      events: 15,
      requests: 2,
    });
    for (const none of [{ events: ['c.*'] }, { channels: ['vip'] }, { tenant: newTenant() }])
      expect(await estimate({ tenant, batch, ...none })).toMatchObject({ events: 0, requests: 0 });
    const { since, until } = await estimate({ tenant });
    expect(Date.parse(until) - Date.parse(since)).toBe(3_600_000);
  });

  test('covers events of the tenant that the key may see, and explains settings that exclude each other', async () => {
    const [own, other] = [newTenant(), newTenant()];
    await publishMany(posthorn, other, [1, 2]);
    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: own })).body;
    expect(await estimate({ batch: {} }, key)).toMatchObject({ events: 0, examined: 0 });
    const foreign = posthorn.api('POST', '/v1/shaping/estimate', { tenant: other }, { key });
    await expectStatus(foreign, 403);

    const debounce = { key: 'data.order', window_ms: 10, max_wait_ms: 5 };
    const { body } = await expectStatus(
      posthorn.api('POST', '/v1/shaping/estimate', { batch: {}, debounce, filter: { x: { $near: 1 } } }),
      422,
    );
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
      'debounce',
      'debounce.max_wait_ms',
      expect.stringContaining('filter'),
    ]);
  });
});
