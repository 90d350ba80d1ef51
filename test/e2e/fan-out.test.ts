import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorns,
} from '../support/posthorn.ts';

const [one, two] = usePosthorns({}, {});

describe('FAN-1: one delivery per matching endpoint of the tenant', () => {
  test('exactly the endpoints that subscribe to the type get the event', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const subscriptions: Record<string, string[]> = {
      everything: ['*'],
      exact: ['order.created'],
      prefix: ['order.*'],
      several: ['invoice.paid', 'order.created'],
      'another type': ['order.paid'],
      'another prefix': ['orders.*'],
      'a prefix of the text only': ['order.create'],
    };
    for (const [name, events] of Object.entries(subscriptions)) {
      await createEndpoint(one, { url: `${receiver.url}/${encodeURIComponent(name)}`, tenant, events });
    }
    await createEndpoint(one, { url: `${receiver.url}/another-tenant`, tenant: newTenant() });

    const event = await publish(one, { tenant, type: 'order.created', data: { n: 1 } });
    expect(event.deliveries).toBe(4);
    const deliveries = await untilDeliveries(one, event.id, 'delivered', { count: 4 });
    expect(new Set(deliveries.map(({ id }) => id)).size).toBe(4);
    expect(receiver.requests.map(({ path }) => decodeURIComponent(path.slice(1))).toSorted()).toEqual([
      'everything',
      'exact',
      'prefix',
      'several',
    ]);
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([event.id]),
    );
  });

  test('FAN-2: an endpoint with channels gets only events with one of them', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(one, { url: `${receiver.url}/berlin`, tenant, channels: ['berlin', 'paris'] });
    await createEndpoint(one, { url: `${receiver.url}/all`, tenant });
    const here = await publish(one, { tenant, type: 'a.b', data: 1, channels: ['berlin'] });
    const elsewhere = await publish(one, { tenant, type: 'a.b', data: 1, channels: ['rome'] });
    const nowhere = await publish(one, { tenant, type: 'a.b', data: 1 });
    expect([here, elsewhere, nowhere].map(({ deliveries }) => deliveries)).toEqual([2, 1, 1]);
  });
});

describe('FAN-3: cached subscriptions are never stale', () => {
  test('an endpoint that one process created gets the next event of the other process', async () => {
    const receiver = await newReceiver();
    // Many in a row, so that the cache of the other process is often outdated. Sweeps are off.
    for (let n = 1; n <= 50; n += 1) {
      const tenant = newTenant();
      const [maker, taker] = n % 2 === 0 ? [one, two] : [two, one];
      await createEndpoint(maker, { url: receiver.url, tenant });
      const event = await publish(taker, { tenant, type: 'a.b', data: n });
      expect(event.deliveries).toBe(1);
      await receiver.waitFor(n, 2000);
    }
  });

  test('a change or deletion in one process applies to the next event of the other', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(one, { url: receiver.url, tenant, events: ['a.b'] });
    const count = async (type: string) => (await publish(two, { tenant, type, data: 1 })).deliveries;
    expect(await count('a.b')).toBe(1);
    await expectStatus(one.api('PATCH', `/v1/endpoints/${endpoint.id}`, { events: ['c.d'] }), 200);
    expect([await count('a.b'), await count('c.d')]).toEqual([0, 1]);
    await expectStatus(one.api('DELETE', `/v1/endpoints/${endpoint.id}`), 204);
    expect(await count('c.d')).toBe(0);
  });

  test('a new URL applies to later requests', async () => {
    const [before, after] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const endpoint = await createEndpoint(one, { url: before.url, tenant });
    await expectStatus(one.api('PATCH', `/v1/endpoints/${endpoint.id}`, { url: after.url }), 200);
    const event = await publish(one, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(one, event.id, 'delivered');
    expect([before.requests.length, after.requests.length]).toEqual([0, 1]);
  });
});
