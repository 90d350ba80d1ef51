/** FAN-4: batches survive the death of their worker. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { publishAll } from '../support/publish-all.ts';
import type { RecordedRequest } from '../support/receiver.ts';

const publishMany = (by: Pick<TestPosthorn, 'api'>, tenant: string, data: readonly unknown[]) =>
  publishAll(by, { tenant, type: 'a.b', data });

describe('FAN-4: batches', () => {
  test('kill -9 while a batch is on the wire: the next process sends the same events under the same id', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const receiver = await newReceiver();
    receiver.hang();
    const before = await startTestPosthorn({ database });
    const settings = { url: receiver.url, tenant: 'acme', timeout_ms: 1000 };
    await createEndpoint(before, { ...settings, batch: { max_events: 4, max_wait_ms: 100 } });
    const ids = await publishMany(before, 'acme', [1, 2, 3, 4, 5, 6]);
    await receiver.waitFor(2);
    await before.kill('SIGKILL');
    receiver.release();
    const after = await startTestPosthorn({ database });
    for (const id of ids) await untilDeliveries(after, id, 'delivered');
    expect(receiver.requests).toHaveLength(4);
    const bodies = receiver.requests.map(({ body }) => body.toString());
    expect(bodies.slice(2).toSorted()).toEqual(bodies.slice(0, 2).toSorted());
    await after.stop();
  });
});

describe.each(['none', 'fifo'])(
  'FAN-4: the set of a batch changes between attempts (ordering %s)',
  (ordering) => {
    const posthorn = usePosthorn({ inProcess: true });
    const dataIn = (request: RecordedRequest): unknown[] =>
      request.json().events.map((event: { data: unknown }) => event.data);

    async function newBatchEndpoint(retry: object, settings: object = {}) {
      const receiver = await newReceiver();
      const tenant = newTenant();
      const endpoint = await createEndpoint(posthorn, {
        url: receiver.url,
        tenant,
        ordering,
        retry: { ...retry, jitter: 'none' },
        batch: { max_events: 3, max_wait_ms: 20_000 },
        ...settings,
      });
      receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
      return { receiver, tenant, endpoint };
    }

    /** Of all requests, the id of the first one is sent once. */
    function expectNewId(requests: readonly RecordedRequest[]): void {
      const [first, ...others] = requests.map(({ headers }) => headers['webhook-id']);
      expect(others).not.toContain(first);
      expect(new Set(others).size).toBe(others.length);
    }

    test.each([0, 1, 2])('event %d is expunged: the others are sent under a new id', async (index) => {
      const { receiver, tenant } = await newBatchEndpoint({ schedule: [0, 2] });
      const ids = await publishMany(posthorn, tenant, [0, 1, 2]);
      await receiver.waitFor(1);
      await eventually('the retry is recorded', async () => {
        const [delivery] = await deliveriesOf(posthorn, ids[2]!);
        return delivery!.attempts === 1;
      });
      await expectStatus(posthorn.api('DELETE', `/v1/events/${ids[index]}/payload`), 204);
      const others = [0, 1, 2].filter((data) => data !== index);
      for (const data of others) await untilDeliveries(posthorn, ids[data]!, 'delivered');
      expect(receiver.requests.map(dataIn)).toEqual([[0, 1, 2], others]);
      expectNewId(receiver.requests);
      await untilDeliveries(posthorn, ids[index]!, 'skipped');
    });

    test('the older event expires: the other is sent under a new id', async () => {
      const retry = { schedule: [0, 6], max_age_seconds: 60 };
      const { receiver, tenant, endpoint } = await newBatchEndpoint(retry, {
        batch: { max_events: 2, max_wait_ms: 20_000 },
      });
      const [older] = await publishMany(posthorn, tenant, ['older']);
      const acceptedAt = performance.now();
      await eventually('it is older by four seconds', () => performance.now() - acceptedAt > 4_000);
      const [newer] = await publishMany(posthorn, tenant, ['newer']);
      await receiver.waitFor(1);
      await expectStatus(
        posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { retry: { ...retry, max_age_seconds: 9 } }),
        200,
      );
      await untilDeliveries(posthorn, older!, 'dead');
      await untilDeliveries(posthorn, newer!, 'delivered');
      expect(receiver.requests.map(dataIn)).toEqual([['older', 'newer'], ['newer']]);
      expectNewId(receiver.requests);
    });

    test('an event that was rejected is discarded: the others arrive, and in order with FIFO', async () => {
      const { receiver, tenant } = await newBatchEndpoint(
        { schedule: [0, 0.2] },
        ordering === 'fifo' ? { fifo_on_dead: 'block' } : {},
      );
      receiver.answer((request) => ({ status: dataIn(request).includes('bad') ? 422 : 200 }));
      const ids = await publishMany(posthorn, tenant, ['bad', 1, 2]);
      await untilDeliveries(posthorn, ids[0]!, 'dead');
      const [dead] = await deliveriesOf(posthorn, ids[0]!);
      if (ordering === 'fifo')
        expect(await deliveriesOf(posthorn, ids[2]!)).not.toMatchObject([{ status: 'delivered' }]);
      await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead!.id}/discard`), 200);
      for (const id of ids.slice(1)) await untilDeliveries(posthorn, id, 'delivered');
      const accepted = receiver.requests.map(dataIn).filter((data) => !data.includes('bad'));
      expect(ordering === 'fifo' ? accepted.flat() : accepted.flat().toSorted()).toEqual([1, 2]);
      const sent = receiver.requests.map(({ headers }) => headers['webhook-id']);
      expect(new Set(sent).size).toBe(sent.length);
    });
  },
);
