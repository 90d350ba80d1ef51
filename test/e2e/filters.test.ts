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

const posthorn = usePosthorn();

const LARGE = { 'data.amount': { $gte: 100 } };

async function tenantKey(tenant: string, scope = 'tenant'): Promise<string> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', { scope, tenant }), 201)).body.key;
}

describe('FAN-2: filters of endpoints', () => {
  test('each endpoint gets exactly the events that match its filter', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const filtered = await createEndpoint(posthorn, { url: `${receiver.url}/large`, tenant, filter: LARGE });
    await createEndpoint(posthorn, { url: `${receiver.url}/all`, tenant });
    expect(filtered).toMatchObject({ filter: LARGE });
    const shown = await posthorn.api('GET', `/v1/endpoints/${filtered.id}`);
    expect(shown.body.filter).toEqual(LARGE);

    const publishAmount = (amount: unknown) =>
      publish(posthorn, { tenant, type: 'order.created', data: { amount } });
    const [large, small, text] = [
      await publishAmount(100),
      await publishAmount(99),
      await publishAmount('100'),
    ];
    expect([large, small, text].map(({ deliveries }) => deliveries)).toEqual([2, 1, 1]);
    await untilDeliveries(posthorn, large.id, 'delivered', { count: 2 });
    await untilDeliveries(posthorn, small.id, 'delivered');
    await untilDeliveries(posthorn, text.id, 'delivered');
    const got = receiver.requests.filter(({ path }) => path === '/large');
    expect(got.map(({ headers }) => headers['webhook-id'])).toEqual([large.id]);
  });

  test('a patch replaces the filter as a whole, null removes it, and both apply to the next event', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, filter: LARGE });
    const count = async (amount: number) =>
      (await publish(posthorn, { tenant, type: 'a.b', data: { amount } })).deliveries;
    const patch = async (body: object) =>
      (await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, body), 200)).body.filter;
    expect([await count(5), await count(500)]).toEqual([0, 1]);
    expect(await patch({ filter: { 'data.amount': { $lt: 10 } } })).toEqual({ 'data.amount': { $lt: 10 } });
    expect([await count(5), await count(500)]).toEqual([1, 0]);
    expect(await patch({ description: 'still filtered' })).toEqual({ 'data.amount': { $lt: 10 } });
    expect(await count(500)).toBe(0);
    expect(await patch({ filter: null })).toBeNull();
    expect([await count(5), await count(500)]).toEqual([1, 1]);
  });

  test('a filter applies to endpoints that are named, but not to test events and replays', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      filter: LARGE,
      events: ['x.y'],
    });
    const named = (amount: number) =>
      publish(posthorn, { tenant, type: 'a.b', data: { amount }, endpoint_ids: [id] });
    const [large, small] = [await named(100), await named(1)];
    expect([large.deliveries, small.deliveries]).toEqual([1, 0]);
    expect(await deliveriesOf(posthorn, small.id)).toEqual([]);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/test`, { data: { amount: 1 } }), 202);
    await untilDeliveries(posthorn, large.id, 'delivered');
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { filter: { type: 'none' } }), 200);
    await expectStatus(posthorn.api('POST', `/v1/events/${large.id}/replay`), 202);
    await receiver.waitFor(3);
  });

  test('ACC-5: filtered data arrives byte for byte', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, filter: { 'data.z': 1.1 } });
    const data = '{ "z":1.10,"id":9007199254740993123, "a" : "\\u00e9\\/", "__proto__":{"x":1e400}, "z2":-0}';
    const event = await publish(posthorn, `{"tenant":"${tenant}","type":"a.b","data":${data}}`);
    expect(event.deliveries).toBe(1);
    const [request] = await receiver.waitFor(1);
    expect(request!.body.toString()).toContain(`"data":${data}}`);
  });

  test('large events whose filters use up their time budget do not delay other events', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const filters = Array.from({ length: 40 }, (_, n) => ({ $not: { 'data.numbers': -1 - n } }));
    for (const filter of filters)
      await createEndpoint(posthorn, { url: receiver.url, tenant, filter, paused: true });
    const data = { numbers: Array.from({ length: 60_000 }, (_, n) => n % 10) };
    const heavy = Array.from({ length: 30 }, () => publish(posthorn, { tenant, type: 'a.b', data }));
    const other = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant: other });
    const light = await publish(posthorn, { tenant: other, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, light.id, 'delivered', { timeoutMs: 5000 });
    for (const event of await Promise.all(heavy)) expect(event.deliveries).toBe(40);
  });
});

describe('FAN-2: an invalid filter is refused', () => {
  test.each<[unknown, string]>([
    ['data.amount > 5', 'filter'],
    [[LARGE], 'filter'],
    [{ amount: 5 }, 'filter.amount'],
    [{ 'data.amount': { $gte: {} } }, 'filter.data.amount.$gte'],
    [{ 'data.amount': { $regex: '.*' } }, 'filter.data.amount.$regex'],
    [{ $or: [LARGE, { 'data.x': { $in: 'x' } }] }, 'filter.$or[1].data.x.$in'],
  ])('%j', async (filter, path) => {
    const tenant = newTenant();
    const created = await posthorn.api('POST', '/v1/endpoints', {
      url: 'http://127.0.0.1:9/',
      tenant,
      filter,
    });
    expect(created).toMatchObject({ status: 422, body: { code: 'invalid', errors: [{ path }] } });
    const { id } = await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant, filter: LARGE });
    const patched = await posthorn.api('PATCH', `/v1/endpoints/${id}`, { filter });
    expect(patched).toMatchObject({ status: 422, body: { code: 'invalid', errors: [{ path }] } });
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.filter).toEqual(LARGE);
    const event = { type: 'a.b', data: 1 };
    const tried = await posthorn.api('POST', '/v1/filters/try', { filter, event });
    expect(tried).toMatchObject({ status: 422, body: { code: 'invalid', errors: [{ path }] } });
  });
});

describe('FAN-2: trying a filter', () => {
  const attempt = (filter: unknown, event: unknown, key = posthorn.key) =>
    posthorn.api('POST', '/v1/filters/try', { filter, event }, { key });

  test('works with any key and returns whether it matches, or why not', async () => {
    const tenant = newTenant();
    const event = { type: 'order.created', data: { amount: 50 }, channels: ['eu'] };
    for (const key of [posthorn.key, await tenantKey(tenant), await tenantKey(tenant, 'read')]) {
      expect((await attempt({ channels: 'eu' }, event, key)).body).toEqual({ matches: true, reason: null });
      const answer = await expectStatus(attempt(LARGE, event, key), 200);
      expect(answer.body).toEqual({ matches: false, reason: 'data.amount.$gte: 50 is not at least 100' });
    }
    expect((await attempt(null, event)).body).toEqual({ matches: true, reason: null });
    expect((await posthorn.api('GET', `/v1/events?tenant=${tenant}`)).body.data).toEqual([]);
  });

  test('counts how many of the last events of the tenant it selects', async () => {
    const tenant = newTenant();
    const count = async (body: object, key = posthorn.key) =>
      (await posthorn.api('POST', '/v1/filters/count', body, { key })).body;
    expect(await count({ filter: LARGE, tenant })).toEqual({ examined: 0, matching: 0 });
    for (const [type, amount] of [
      ['order.created', 50],
      ['order.created', 500],
      ['order.paid', 500],
    ] as const)
      await publish(posthorn, { type, tenant, data: { amount } });
    expect(await count({ filter: LARGE, tenant })).toEqual({ examined: 3, matching: 2 });
    expect(await count({ filter: LARGE, events: ['order.paid'] }, await tenantKey(tenant, 'read'))).toEqual({
      examined: 3,
      matching: 1,
    });
    expect(await count({ filter: null, events: ['none.*'], tenant })).toEqual({ examined: 3, matching: 0 });
  });

  test('needs a valid event', async () => {
    expect(await attempt(LARGE, { data: 1 })).toMatchObject({
      status: 422,
      body: { errors: [{ path: 'event.type', message: 'is required' }] },
    });
    expect(await attempt(LARGE, { type: 'a.b' })).toMatchObject({
      body: { errors: [{ path: 'event.data' }] },
    });
    expect(await attempt(LARGE, { type: 'a.b', data: 1, x: 1 })).toMatchObject({
      body: { errors: [{ path: 'event.x' }] },
    });
    expect(await attempt(LARGE, undefined)).toMatchObject({ body: { errors: [{ path: 'event' }] } });
    const key = await tenantKey(newTenant());
    expect(await attempt(LARGE, { type: 'a.b', data: 1, tenant: 'other' }, key)).toMatchObject({
      status: 403,
    });
  });

  test('accepts an event of the largest size', async () => {
    const event = { type: 'a.b', data: { text: 'x'.repeat(255 * 1024), amount: 100 } };
    expect((await attempt(LARGE, event)).body).toEqual({ matches: true, reason: null });
  });
});

test('FAN-2: another tenant can neither see nor set a filter', async () => {
  const [tenant, key] = [newTenant(), await tenantKey(newTenant())];
  const { id } = await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant, filter: LARGE });
  await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`, undefined, { key }), 404);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { filter: null }, { key }), 404);
  expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.filter).toEqual(LARGE);
});
