/** FAN-4: of several events with the same key, an endpoint gets one. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { parsePublicId, publicId, timeOfId, type Uuid } from '../../src/domain/ids.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';

const posthorn = usePosthorn({ inProcess: true });

const publishMany = (by: Pick<TestPosthorn, 'api'>, tenant: string, data: readonly unknown[]) =>
  publishAll(by, { tenant, type: 'order.changed', data });

async function newDebounced(debounce: object, settings: object = {}) {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const retry = { schedule: [0, 0.3, 0.3], jitter: 'none' };
  const base = { url: receiver.url, tenant, retry, debounce: { key: 'data.order', ...debounce } };
  const endpoint = await createEndpoint(posthorn, { ...base, ...settings });
  return { receiver, tenant, endpoint };
}

const versions = (count: number, order: unknown = 'o1') =>
  Array.from({ length: count }, (_, version) => ({ order, version }));

describe('FAN-4: debounce', () => {
  test('of many events with one key only the last is sent, and the others point to it', async () => {
    const { receiver, tenant } = await newDebounced({ window_ms: 300 });
    const ids = await publishMany(posthorn, tenant, versions(50));
    const [sent] = await untilDeliveries(posthorn, ids[49]!, 'delivered');
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]!.json()).toMatchObject({ id: ids[49], data: { version: 49 } });
    expect(receiver.requests[0]!.headers['posthorn-debounced']).toBe('49');
    for (const id of [ids[0]!, ids[48]!]) {
      const [skipped] = await deliveriesOf(posthorn, id);
      expect(skipped).toMatchObject({ status: 'skipped', reason: 'debounced', debounced_by: sent!.id });
    }
  });

  test('events with other keys, or without a value, are sent as they are', async () => {
    const { receiver, tenant } = await newDebounced({ window_ms: 200 });
    const data = [{ order: 1 }, { order: '1' }, { order: null }, {}, { order: 2 }, 'text', { order: 2 }];
    await publishMany(posthorn, tenant, data);
    await receiver.waitFor(6);
    const sent = receiver.requests.map((request) => JSON.stringify(request.json().data)).toSorted();
    expect(sent).toEqual(['"text"', '{"order":"1"}', '{"order":1}', '{"order":2}', '{"order":null}', '{}']);
  });

  test('the keys of a storm become due evenly over a quarter of the window, not all at once', async () => {
    const { tenant, endpoint } = await newDebounced({ window_ms: 100_000 });
    await publishMany(
      posthorn,
      tenant,
      Array.from({ length: 200 }, (_, order) => ({ order })),
    );
    const rows = await posthorn.database.query<{ id: Uuid; due_at: Date }>(
      'select id, due_at from posthorn.queue where endpoint_id = $1',
      [parsePublicId('ep', endpoint.id)],
    );
    // From the time in the id, which may be some milliseconds earlier than the commit.
    const waits = rows.map(({ id, due_at }) => due_at.getTime() - timeOfId(id));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(100_000);
    const perFifth = Map.groupBy(waits, (ms) => Math.floor((ms - 100_000) / 5_000));
    for (let fifth = 0; fifth < 5; fifth += 1) expect(perFifth.get(fifth)!.length).toBeGreaterThan(20);
  });

  test('max_wait_ms bounds how long a steady stream holds the event back', async () => {
    const { receiver, tenant } = await newDebounced({ window_ms: 1_000, max_wait_ms: 1_500 });
    let isDone = false;
    onTestFinished(() => {
      isDone = true;
    });
    const stream = (async () => {
      while (!isDone && receiver.requests.length === 0)
        await publish(posthorn, { tenant, type: 'a.b', data: { order: 7 } });
    })();
    await receiver.waitFor(1, 60_000);
    await stream;
    expect(Number(receiver.requests[0]!.headers['posthorn-debounced'])).toBeGreaterThan(0);
  });

  test('a newer event supersedes one that waits for a retry', async () => {
    const { receiver, tenant } = await newDebounced(
      { window_ms: 100 },
      { retry: { schedule: [0, 1], jitter: 'none' } },
    );
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const [first] = await publishMany(posthorn, tenant, versions(1));
    await eventually('the first attempt is recorded', async () => {
      const [delivery] = await deliveriesOf(posthorn, first!);
      return delivery!.attempts === 1;
    });
    const [second] = await publishMany(posthorn, tenant, versions(1));
    await untilDeliveries(posthorn, second!, 'delivered');
    const [superseded] = await untilDeliveries(posthorn, first!, 'skipped');
    expect(superseded).toMatchObject({ reason: 'debounced', attempts: 1 });
    expect(receiver.requests).toHaveLength(2);
  });

  test('mode first sends the first at once, and the others of the window never', async () => {
    const { receiver, tenant } = await newDebounced({ window_ms: 60_000, mode: 'first' });
    const [first] = await publishMany(posthorn, tenant, versions(1));
    const [sent] = await untilDeliveries(posthorn, first!, 'delivered');
    const others = await publishMany(posthorn, tenant, versions(5));
    for (const id of others) {
      const [skipped] = await untilDeliveries(posthorn, id, 'skipped');
      expect(skipped).toMatchObject({ reason: 'debounced', debounced_by: sent!.id });
    }
    expect(receiver.requests).toHaveLength(1);
  });

  test('mode first: if the sent one dies, the newest superseded one is sent', async () => {
    const { receiver, tenant } = await newDebounced({ window_ms: 60_000, mode: 'first' });
    receiver.hang();
    const [first] = await publishMany(posthorn, tenant, versions(1));
    await receiver.waitFor(1);
    const others = await publishMany(posthorn, tenant, versions(3));
    receiver.answer(({ index }) => ({ status: index === 0 ? 422 : 200 }));
    receiver.release();
    await untilDeliveries(posthorn, first!, 'dead');
    const [sent] = await untilDeliveries(posthorn, others[2]!, 'delivered');
    const [skipped] = await untilDeliveries(posthorn, others[0]!, 'skipped');
    expect(skipped).toMatchObject({ debounced_by: sent!.id });
    expect(receiver.requests.map((request) => request.json().id)).toEqual([first, others[2]]);
  });

  test('a long chain of superseded deliveries is followed only so far that a page stays fast', async () => {
    const { tenant } = await newDebounced({ window_ms: 100 });
    const ids = await publishMany(posthorn, tenant, versions(2));
    const [skipped] = await untilDeliveries(posthorn, ids[0]!, 'skipped');
    const id = parsePublicId('dlv', skipped!.id);
    const link = (n: string) => `lpad(to_hex(${n}), 32, '0')::uuid`;
    await posthorn.database.query(
      `insert into posthorn.debounced (delivery_id, endpoint_id, by_id)
       select ${link('n')}, endpoint_id, ${link('n + 1')}
         from posthorn.debounced cross join generate_series(1, 10000) as n where delivery_id = $1`,
      [id],
    );
    await posthorn.database.query(
      `update posthorn.debounced set by_id = ${link('1')} where delivery_id = $1`,
      [id],
    );
    const [read] = await deliveriesOf(posthorn, ids[0]!);
    // Fifty links: one to the first of the chain, and 49 more.
    expect(read!.debounced_by).toBe(publicId('dlv', '00000000-0000-0000-0000-000000000032' as Uuid));
  });

  test('replays and test events are never debounced', async () => {
    const { receiver, tenant, endpoint } = await newDebounced({ window_ms: 150 });
    const ids = await publishMany(posthorn, tenant, versions(2));
    await untilDeliveries(posthorn, ids[1]!, 'delivered');
    await expectStatus(posthorn.api('POST', `/v1/events/${ids[0]}/replay`), 202);
    await untilDeliveries(posthorn, ids[0]!, 'delivered');
    for (const version of [1, 2]) {
      const test = { type: 'a.b', data: { order: 'o1', version } };
      await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/test`, test), 202);
    }
    await receiver.waitFor(4);
  });

  test.each([
    [{ debounce: { key: 'data.a', window_ms: 10 }, batch: {} }, 'debounce'],
    [{ debounce: { key: 'data.a', window_ms: 10 }, ordering: 'fifo' }, 'debounce'],
    [{ debounce: { key: 'order', window_ms: 10 } }, 'debounce.key'],
    [{ debounce: { key: 'data.a' } }, 'debounce.window_ms'],
    [{ debounce: { key: 'data.a', window_ms: 10, max_wait_ms: 5 } }, 'debounce.max_wait_ms'],
    [{ debounce: { key: 'data.a', window_ms: 10, mode: 'middle' } }, 'debounce.mode'],
  ])('refuses %j', async (settings, path) => {
    const endpoint = { url: 'https://example.com/', ...settings };
    const { body } = await expectStatus(posthorn.api('POST', '/v1/endpoints', endpoint), 422);
    expect(body.errors).toMatchObject([{ path }]);
  });
});
