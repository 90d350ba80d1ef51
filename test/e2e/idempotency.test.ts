import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  type AcceptedEvent,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorns,
} from '../support/posthorn.ts';

const [one, two] = usePosthorns({}, {});

async function withReceiver() {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(one, { url: receiver.url, tenant });
  return { receiver, tenant };
}

const ids = (answers: readonly AcceptedEvent[]) => new Set(answers.map(({ id }) => id));
const firsts = (answers: readonly AcceptedEvent[]) => answers.filter(({ duplicate }) => !duplicate);

describe('ACC-4: one event per idempotency key and tenant', () => {
  test('a repeated event gets the id of the first one and is not delivered', async () => {
    const { receiver, tenant } = await withReceiver();
    const event = { tenant, type: 'order.created', data: { n: 1 }, idempotency_key: 'a' };
    const first = await publish(one, event);
    expect(first).toMatchObject({ duplicate: false, deliveries: 1 });
    expect(await publish(one, event)).toEqual({ ...first, duplicate: true });
    await untilDeliveries(one, first.id, 'delivered');
    expect(await publish(one, event)).toEqual({ ...first, duplicate: true });

    // A later event: when it has arrived, a second delivery of the first event would have arrived too.
    const last = await publish(one, { ...event, idempotency_key: 'b' });
    await untilDeliveries(one, last.id, 'delivered');
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([first.id, last.id]);
  });

  test('the key may be in a header, but must not differ from the key in the body', async () => {
    const { tenant } = await withReceiver();
    const event = { tenant, type: 'a.b', data: 1 };
    const headers = { 'idempotency-key': 'from the header' };
    const first = await publish(one, event, { headers });
    expect(await publish(one, { ...event, idempotency_key: 'from the header' })).toMatchObject({
      id: first.id,
      duplicate: true,
    });
    const answer = await one.api('POST', '/v1/events', { ...event, idempotency_key: 'x' }, { headers });
    expect(answer.body).toMatchObject({ status: 422, errors: [{ path: 'idempotency_key' }] });
  });

  test('simultaneous repeats in two processes become one event', async () => {
    const { receiver, tenant } = await withReceiver();
    const event = { tenant, type: 'order.created', data: { n: 1 }, idempotency_key: 'same' };
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => publish(index % 2 === 0 ? one : two, event)),
    );
    expect(ids(answers).size).toBe(1);
    expect(firsts(answers)).toHaveLength(1);
    const id = answers[0]!.id;
    await untilDeliveries(one, id, 'delivered');
    const last = await publish(two, { tenant, type: 'order.created', data: 'last' });
    await untilDeliveries(one, last.id, 'delivered');
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, last.id]);
  });

  test('many keys at once, in different orders, in two processes, cause no deadlock', async () => {
    const { receiver, tenant } = await withReceiver();
    const events = Array.from({ length: 100 }, (_, n) => ({
      tenant,
      type: 'order.created',
      data: { n },
      idempotency_key: `key-${n}`,
    }));
    const batches = await Promise.all([
      one.api('POST', '/v1/events/batch', { events }),
      two.api('POST', '/v1/events/batch', { events: events.toReversed() }),
      ...events.map((event) => two.api('POST', '/v1/events', event)),
    ]);
    const answers: AcceptedEvent[] = batches.flatMap(({ body }) => body.results ?? [body]);
    expect(answers).toHaveLength(300);
    expect(ids(answers).size).toBe(100);
    expect(firsts(answers)).toHaveLength(100);
    await receiver.waitFor(100);
    await eventually('all are settled', async () => {
      const { body } = await one.api('GET', `/v1/deliveries?tenant=${tenant}&status=delivered&limit=250`);
      return body.data.length === 100;
    });
    expect(receiver.requests).toHaveLength(100);
  });

  test('the same key for another type or other data is a 409', async () => {
    const { receiver, tenant } = await withReceiver();
    const event = { tenant, type: 'order.created', data: { n: 1 }, idempotency_key: 'conflict' };
    const first = await publish(one, event);
    for (const other of [{ data: { n: 2 } }, { type: 'order.paid' }]) {
      const answer = await two.api('POST', '/v1/events', { ...event, ...other });
      expect(answer.body).toMatchObject({
        status: 409,
        code: 'idempotency_conflict',
        errors: [{ path: 'idempotency_key' }],
      });
    }
    await untilDeliveries(one, first.id, 'delivered');
    expect(receiver.requests).toHaveLength(1);
  });

  test('the same key for other data within one batch is a 409 of that item only', async () => {
    const { tenant } = await withReceiver();
    const event = { tenant, type: 'a.b', idempotency_key: 'within' };
    const events = [
      { ...event, data: 1 },
      { ...event, data: 1 },
      { ...event, data: 2 },
    ];
    const { body } = await one.api('POST', '/v1/events/batch', { events });
    const { id } = body.results[0];
    expect(body.results).toMatchObject([
      { duplicate: false },
      { id, duplicate: true },
      { error: { status: 409, code: 'idempotency_conflict' } },
    ]);
  });

  test('the same key of two tenants is two events', async () => {
    const event = { type: 'a.b', data: 1, idempotency_key: 'shared' };
    const answers = [
      await publish(one, { ...event, tenant: newTenant() }),
      await publish(one, { ...event, tenant: newTenant() }),
    ];
    expect(ids(answers).size).toBe(2);
    expect(firsts(answers)).toHaveLength(2);
  });

  test('a key can be reused after it expires', async () => {
    const { tenant } = await withReceiver();
    const event = { tenant, type: 'a.b', data: 1, idempotency_key: 'old' };
    const first = await publish(one, event);
    await one.database.query(
      "update posthorn.idempotency_keys set expires_at = now() - interval '1 s' where key = 'old'",
    );
    const second = await publish(two, { ...event, data: 2 });
    expect(second).toMatchObject({ duplicate: false });
    expect(second.id).not.toBe(first.id);
  });
});

test('ACC-4: a whole batch can be sent again with one Idempotency-Key header', async () => {
  const tenant = newTenant();
  const batch = { events: [1, 2, 3].map((data) => ({ tenant, type: 'a.b', data })) };
  const send = () =>
    one.api('POST', '/v1/events/batch', batch, { headers: { 'idempotency-key': `batch-${tenant}` } });
  const first = await expectStatus(send(), 202);
  const second = await expectStatus(send(), 202);
  expect(first.body.results.map((result: { duplicate: boolean }) => result.duplicate)).toEqual([
    false,
    false,
    false,
  ]);
  expect(second.body.results).toMatchObject(
    first.body.results.map(({ id }: { id: string }) => ({ id, duplicate: true })),
  );
});
