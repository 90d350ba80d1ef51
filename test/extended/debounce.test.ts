/** FAN-4: debounce survives the death of its worker. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';

const publishMany = (by: Pick<TestPosthorn, 'api'>, tenant: string, data: readonly unknown[]) =>
  publishAll(by, { tenant, type: 'order.changed', data });

const versions = (count: number) => Array.from({ length: count }, (_, version) => ({ order: 'o1', version }));

describe('FAN-4: debounce', () => {
  test('the window survives a restart', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    const before = await startTestPosthorn({ database });
    const debounce = { key: 'data.order', window_ms: 5_000 };
    await createEndpoint(before, { url: receiver.url, tenant: 'acme', debounce });
    const early = await publishMany(before, 'acme', versions(5));
    await before.kill('SIGKILL');
    const after = await startTestPosthorn({ database });
    const late = await publishMany(after, 'acme', versions(5));
    await untilDeliveries(after, late[4]!, 'delivered', { timeoutMs: 20_000 });
    for (const id of [...early, ...late.slice(0, 4)]) await untilDeliveries(after, id, 'skipped');
    expect(receiver.requests.map(({ headers }) => headers['posthorn-debounced'])).toEqual(['9']);
    await after.stop();
  });

  test('10,000 events in a second on one key become one request, and on 10,000 keys 10,000, at the rate of the endpoint', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const [receiver, many] = [await newReceiver(), await newReceiver()];
    const posthorn = await startTestPosthorn({ database });
    onTestFinished(() => posthorn.stop());
    const debounce = { key: 'data.order', window_ms: 5_000, max_wait_ms: 60_000 };
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'one', debounce });
    const rate_limit = { per_second: 1_000, burst: 50 };
    await createEndpoint(posthorn, {
      url: many.url,
      tenant: 'many',
      debounce,
      max_in_flight: 50,
      rate_limit,
    });

    const ids = await storm(posthorn, 'one', () => 'same');
    await untilDeliveries(posthorn, ids.at(-1)!, 'delivered', { timeoutMs: 60_000 });
    const requests = await eventually(
      'all others are skipped',
      async () => {
        const [row] = await database.query<{ skipped: number; ended: number }>(
          `select count(*) filter (where status = 'skipped')::int as skipped, count(*)::int as ended from posthorn.deliveries`,
        );
        return row!.ended === ids.length && row;
      },
      { timeoutMs: 60_000 },
    );
    expect(requests.skipped).toBe(ids.length - receiver.requests.length);
    expect(receiver.requests).toHaveLength(1);
    expect(receiver.requests[0]!.headers['posthorn-debounced']).toBe(String(ids.length - 1));

    await storm(posthorn, 'many', (n) => n);
    await many.waitFor(10_000, 180_000);
    expect(arrivals(many.requests).size).toBe(10_000);
    // All windows end at about the same time. Only the rate limit paces the requests; the wire may bunch a few.
    const perSecond = Map.groupBy(many.requests, ({ at }) => Math.floor(at / 1_000));
    expect(Math.max(...[...perSecond.values()].map((each) => each.length))).toBeLessThan(1_300);
  }, 300_000);

  test('max_wait_ms holds under a flood on one key', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    const posthorn = await startTestPosthorn({ database });
    onTestFinished(() => posthorn.stop());
    const debounce = { key: 'data.order', window_ms: 1_000, max_wait_ms: 1_500 };
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme', debounce });
    const startedAt = Date.now();
    let published = 0;
    const flood = Array.from({ length: 10 }, async () => {
      while (receiver.requests.length < 4) {
        await publish(posthorn, { tenant: 'acme', type: 'a.b', data: { order: 7 } });
        published += 1;
      }
    });
    await Promise.all(flood);
    // A new window begins when a request is sent, so the next one follows 1.5 seconds later, or two seconds late on a busy machine.
    const times = [startedAt, ...receiver.requests.map(({ at }) => at)];
    for (const [index, at] of times.slice(1).entries()) expect(at - times[index]!).toBeLessThan(3_500);
    await eventually('every event is sent or skipped', async () => {
      const [row] = await database.query<{ ended: number }>(
        'select count(*)::int as ended from posthorn.deliveries',
      );
      return row!.ended === published;
    });
    const counts = receiver.requests.map(({ headers }) => Number(headers['posthorn-debounced'] ?? 0));
    expect(counts.reduce((sum, each) => sum + each + 1, 0)).toBe(published);
  }, 60_000);
});

/** 10,000 events, 100 per request, ten requests at a time. */
async function storm(
  posthorn: TestPosthorn,
  tenant: string,
  orderOf: (n: number) => unknown,
): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < 10_000; n += 1_000) {
    const parts = Array.from({ length: 10 }, (_, part) =>
      publishMany(
        posthorn,
        tenant,
        Array.from({ length: 100 }, (_each, i) => ({ order: orderOf(n + 100 * part + i) })),
      ),
    );
    ids.push(...(await Promise.all(parts)).flat());
  }
  return ids;
}
