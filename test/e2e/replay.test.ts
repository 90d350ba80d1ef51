import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { idPrefixes, parsePublicId } from '../../src/domain/ids.ts';
import type { Settlement } from '../../src/ports/delivery-queue.ts';
import { settleDeliveries } from '../../src/postgres/queries/settle-deliveries.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  type ShownDelivery,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { RecordedRequest } from '../support/receiver.ts';

const posthorn = usePosthorn();

const REJECT = { status: 400 };
const OK = { status: 200 };
const eventIdOf = ({ headers }: RecordedRequest) => headers['webhook-id'];

const replay = async (id: string) =>
  (await expectStatus(posthorn.api('POST', `/v1/deliveries/${id}/replay`), 202)).body as ShownDelivery & {
    replaying: boolean;
    replays: number;
  };
const deliveryNow = async (id: string) => (await posthorn.api('GET', `/v1/deliveries/${id}`)).body;
const deadLetters = async (tenant: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/dead-letters?tenant=${tenant}`), 200)).body.data;

/** A receiver, an endpoint for it, and one event that it rejected. */
async function oneDead(settings: Record<string, unknown> = {}) {
  const receiver = await newReceiver();
  receiver.answer(REJECT);
  const tenant = newTenant();
  const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant, ...settings });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: { big: 1 } });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
  return { receiver, tenant, endpoint, event, delivery: delivery! };
}

describe('DLQ-2: replaying one delivery', () => {
  test('DLQ-1, DLQ-3: a dead delivery stays in the list, marked as replaying, until its replay succeeds, with the same ids and payload', async () => {
    const { receiver, tenant, delivery, event } = await oneDead();
    expect(await deadLetters(tenant)).toMatchObject([
      { id: delivery.id, status: 'dead', reason: 'rejected', replaying: false, attempts: 1 },
    ]);
    receiver.hang();
    expect(await replay(delivery.id)).toMatchObject({
      id: delivery.id,
      event_id: event.id,
      status: 'pending',
      replaying: true,
      replays: 1,
    });
    await receiver.waitFor(2);
    expect(await deadLetters(tenant)).toMatchObject([
      { id: delivery.id, replaying: true, reason: 'rejected', dead_at: expect.any(String) },
    ]);
    receiver.answer(OK);
    receiver.release();
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(await deadLetters(tenant)).toEqual([]);
    const [first, second] = receiver.requests;
    expect(second!.body.equals(first!.body)).toBe(true);
    expect(second!.headers).toMatchObject({
      'webhook-id': event.id,
      'posthorn-delivery': delivery.id,
      'posthorn-attempt': '2',
      'posthorn-retry-reason': 'replay',
    });
    expect(await attemptsOf(posthorn, delivery.id)).toMatchObject([
      { number: 1, outcome: 'dead', trigger: 'auto' },
      { number: 2, outcome: 'delivered', trigger: 'replay' },
    ]);
  });

  test('many replays at the same time count as often as they send', async () => {
    const { receiver, delivery, event } = await oneDead();
    receiver.answer(OK);
    await Promise.all(Array.from({ length: 8 }, () => replay(delivery.id)));
    await untilDeliveries(posthorn, event.id, 'delivered');
    await Promise.all(Array.from({ length: 8 }, () => replay(delivery.id)));
    await untilDeliveries(posthorn, event.id, 'delivered');
    const { replays, attempts } = await deliveryNow(delivery.id);
    expect([replays, attempts]).toEqual([receiver.requests.length - 1, receiver.requests.length]);
  });

  test('many replays at the same time succeed if every change takes long, as on a slow disk', async () => {
    const { receiver, delivery, event } = await oneDead();
    receiver.answer(OK);
    await posthorn.database.query(`
      create function posthorn.slow_down() returns trigger language plpgsql as
        $$ begin perform pg_sleep(0.05); return null; end $$;
      create trigger slow_down after insert or delete on posthorn.queue for each statement execute function posthorn.slow_down()`);
    onTestFinished(async () => {
      await posthorn.database.query('drop function posthorn.slow_down cascade');
    });
    await Promise.all(Array.from({ length: 8 }, () => replay(delivery.id)));
    await untilDeliveries(posthorn, event.id, 'delivered');
  });

  test('the schedule starts again, attempt numbers continue, and a delivery that fails again is dead again', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.05], jitter: 'none' },
      breaker: null,
    });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    await replay(delivery!.id);
    const [again] = await eventually('it is dead again', async () => {
      const now = await deadLetters(tenant);
      return now[0]?.attempts === 4 && !now[0].replaying && now;
    });
    expect(again).toMatchObject({ status: 'dead', reason: 'exhausted', replays: 1 });
    expect(await attemptsOf(posthorn, delivery!.id)).toMatchObject([
      { number: 1, trigger: 'auto', outcome: 'retry' },
      { number: 2, trigger: 'auto', outcome: 'dead' },
      { number: 3, trigger: 'replay', outcome: 'retry' },
      { number: 4, trigger: 'auto', outcome: 'dead' },
    ]);
  });

  test('delivered, skipped and discarded deliveries can be replayed too', async () => {
    const { receiver, endpoint, event, delivery, tenant } = await oneDead();
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id}/discard`), 200);
    receiver.answer(OK);
    await replay(delivery.id);
    await untilDeliveries(posthorn, event.id, 'delivered');
    await replay(delivery.id);
    await receiver.waitFor(3);
    await untilDeliveries(posthorn, event.id, 'delivered');

    await posthorn.api('POST', `/v1/endpoints/${endpoint.id}/pause`);
    const skipped = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: false, paused: false });
    const [left] = await untilDeliveries(posthorn, skipped.id, 'skipped');
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${left!.id}/replay`), 409);
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: true });
    await replay(left!.id);
    await untilDeliveries(posthorn, skipped.id, 'delivered');
    expect(receiver.requests).toHaveLength(4);
  });

  test('409 if its endpoint is disabled or deleted; 404 if it does not exist or belongs to another tenant', async () => {
    const { delivery, endpoint } = await oneDead();
    const other = newTenant();
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: other });
    const key = { key: body.key };
    for (const [method, path] of [
      ['POST', `/v1/deliveries/${delivery.id}/replay`],
      ['POST', `/v1/deliveries/${delivery.id}/discard`],
      ['POST', `/v1/deliveries/${delivery.id}/restore`],
      ['POST', `/v1/events/${delivery.event_id}/replay`],
      ['POST', `/v1/endpoints/${endpoint.id}/replay`],
    ] as const) {
      await expectStatus(posthorn.api(method, path, undefined, key), 404);
    }
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id.slice(0, -4)}zzzz/replay`), 404);
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { enabled: false });
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id}/replay`), 409);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`), 409);
    await posthorn.api('DELETE', `/v1/endpoints/${endpoint.id}`);
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery.id}/replay`), 409);
    expect(await deliveryNow(delivery.id)).toMatchObject({ status: 'dead', replaying: false, replays: 0 });
  });
});

describe('RTY-7: replaying a waiting delivery', () => {
  async function oneWaiting(schedule = [0, 3600]) {
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule, jitter: 'none' },
    });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await receiver.waitFor(1);
    return { receiver, tenant, endpoint, event };
  }

  test('makes it due now, and a success leaves no second retry', async () => {
    const { receiver, event } = await oneWaiting();
    const [delivery] = await untilDeliveries(posthorn, event.id, 'retrying');
    receiver.answer(OK);
    await replay(delivery!.id);
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(2);
    expect(
      await posthorn.database.query('select from posthorn.queue where endpoint_id::text = $1', [event.id]),
    ).toEqual([]);
    expect(await attemptsOf(posthorn, delivery!.id)).toMatchObject([
      { number: 1 },
      { number: 2, trigger: 'replay' },
    ]);
  });

  test('while a request is on the wire: a success of that request ends the delivery', async () => {
    const { receiver, event } = await oneWaiting([0, 0.05, 3600]);
    receiver.hang();
    await receiver.waitFor(2);
    const [delivery] = await deliveriesOf(posthorn, event.id);
    await replay(delivery!.id);
    receiver.answer(OK);
    receiver.release();
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(2);
  });

  test('while the last request is on the wire: a failure of that request does not end the delivery', async () => {
    const { receiver, event } = await oneWaiting([0, 0.05]);
    receiver.hang();
    await receiver.waitFor(2);
    const [delivery] = await deliveriesOf(posthorn, event.id);
    await replay(delivery!.id);
    receiver.answer(({ index }) => (index < 2 ? { status: 503 } : OK));
    receiver.release();
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(3);
  });

  test('HLT-1: waits while the circuit is open, and may be the probe', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 3600], jitter: 'none' },
      breaker: { consecutive: 1, cooldown_seconds: 1 },
    });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'retrying');
    const [{ at: failedAt }] = (await receiver.waitFor(1)) as [RecordedRequest];
    receiver.answer(OK);
    await replay(delivery!.id);
    expect(await deliveryNow(delivery!.id)).toMatchObject({
      status: 'pending',
      waiting_reason: 'circuit_open',
    });
    await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests[1]!.at - failedAt).toBeGreaterThanOrEqual(950);
    expect(receiver.requests).toHaveLength(2);
  });
});

describe('DLQ-2: replaying an event', () => {
  test('replays all deliveries, those of some endpoints, or those in a state', async () => {
    const tenant = newTenant();
    const receivers = [await newReceiver(), await newReceiver(), await newReceiver()];
    receivers[0]!.answer(REJECT);
    const ids: string[] = [];
    for (const { url } of receivers) ids.push((await createEndpoint(posthorn, { url, tenant })).id);
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const settled = () =>
      eventually('all have ended', async () => {
        const all = await deliveriesOf(posthorn, event.id);
        return all.every(({ status }) => status === 'dead' || status === 'delivered') && all;
      });
    const counts = () => receivers.map(({ requests }) => requests.length);
    await settled();
    const again = async (body?: object) =>
      (await expectStatus(posthorn.api('POST', `/v1/events/${event.id}/replay`, body), 202)).body;

    expect(await again({ status: 'dead' })).toEqual({ deliveries: 1, skipped: 0, task_id: null });
    await receivers[0]!.waitFor(2);
    await settled();
    expect(await again({ endpoint_ids: [ids[2]] })).toEqual({ deliveries: 1, skipped: 0, task_id: null });
    await receivers[2]!.waitFor(2);
    await settled();
    expect(counts()).toEqual([2, 1, 2]);
    expect(await again()).toEqual({ deliveries: 3, skipped: 0, task_id: null });
    await Promise.all([receivers[0]!.waitFor(3), receivers[1]!.waitFor(2), receivers[2]!.waitFor(3)]);
    await settled();
    expect(counts()).toEqual([3, 2, 3]);
    await posthorn.api('PATCH', `/v1/endpoints/${ids[1]}`, { enabled: false });
    const before = await deliveriesOf(posthorn, event.id);
    const count = async (body: object) =>
      (
        await expectStatus(
          posthorn.api('POST', `/v1/events/${event.id}/replay`, { ...body, dry_run: true }),
          200,
        )
      ).body;
    expect(await count({})).toEqual({ deliveries: 2, skipped: 1, task_id: null });
    expect(await count({ status: 'dead' })).toEqual({ deliveries: 1, skipped: 0, task_id: null });
    expect(await deliveriesOf(posthorn, event.id), 'a dry run changes nothing').toEqual(before);
    expect(await again({ status: ['delivered'] })).toEqual({ deliveries: 1, skipped: 1, task_id: null });
    await expectStatus(posthorn.api('POST', `/v1/events/${event.id}/replay`, { endpoint_ids: ['x'] }), 422);
    await receivers[2]!.waitFor(4);
  });

  test('is refused if a named endpoint, or every endpoint, is unavailable', async () => {
    const { receiver, tenant, endpoint: off, event } = await oneDead();
    const on = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const both = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    await untilDeliveries(posthorn, both.id, 'dead', { count: 2 });
    const refused = async (id: string, status: number, body?: object) =>
      (await expectStatus(posthorn.api('POST', `/v1/events/${id}/replay`, body), status)).body;
    expect(await refused(event.id, 422, { endpoint_ids: [off.id, on.id] })).toMatchObject({
      code: 'invalid',
      errors: [
        { path: 'endpoint_ids[1]', message: 'has no delivery of this event: remove it from the list' },
      ],
    });

    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${off.id}`, { enabled: false }), 200);
    expect((await refused(event.id, 409)).detail).toBe(
      'The endpoint of this delivery is disabled. Enable it first.',
    );
    expect(await refused(event.id, 200, { dry_run: true })).toEqual({
      deliveries: 0,
      skipped: 1,
      task_id: null,
    });
    expect(await refused(both.id, 409, { endpoint_ids: [on.id, off.id] })).toMatchObject({
      code: 'conflict',
      errors: [
        { path: 'endpoint_ids[1]', message: expect.stringContaining('is a disabled endpoint: enable it') },
      ],
    });
    // The refused replays have sent nothing.
    expect(await deadLetters(tenant)).toMatchObject(Array.from({ length: 3 }, () => ({ replays: 0 })));
    expect(receiver.requests).toHaveLength(3);
    expect(await refused(both.id, 202)).toEqual({ deliveries: 1, skipped: 1, task_id: null });
    await receiver.waitFor(4);

    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${off.id}`), 204);
    expect((await refused(event.id, 409)).detail).toBe('The endpoint of this delivery has been deleted.');
    expect((await refused(event.id, 409, { endpoint_ids: [off.id] })).detail).toContain(
      'is a deleted endpoint',
    );
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${on.id}`, { enabled: false }), 200);
    expect((await refused(both.id, 409)).detail).toBe(
      'All endpoints of these deliveries are disabled or deleted. Enable one first.',
    );
  });
});

describe('DSP-3: replay and order', () => {
  test('a replayed delivery goes to the tail of a FIFO lane', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    receiver.answer(({ index }) => (index === 0 ? REJECT : OK));
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 0 });
    const [dead] = await untilDeliveries(posthorn, first.id, 'dead');
    await posthorn.api('POST', `/v1/endpoints/${endpoint.id}/pause`);
    const ids = [];
    for (let n = 1; n <= 3; n += 1) ids.push((await publish(posthorn, { tenant, type: 'a.b', data: n })).id);
    await replay(dead!.id);
    ids.push(first.id, (await publish(posthorn, { tenant, type: 'a.b', data: 4 })).id);
    await posthorn.api('POST', `/v1/endpoints/${endpoint.id}/resume`);
    await receiver.waitFor(6);
    expect(receiver.requests.slice(1).map(eventIdOf)).toEqual(ids);
  });

  test('the head of a FIFO lane that waits for its retry becomes due, and keeps its place', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      ordering: 'fifo',
      retry: { schedule: [0, 3600], jitter: 'none' },
    });
    receiver.answer(({ index }) => (index === 0 ? { status: 503 } : OK));
    const head = await publish(posthorn, { tenant, type: 'a.b', data: 0 });
    const [waiting] = await untilDeliveries(posthorn, head.id, 'retrying');
    const next = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [behind] = await deliveriesOf(posthorn, next.id);
    expect(behind).toMatchObject({ status: 'pending', waiting_reason: 'ordering' });
    await replay(waiting!.id);
    await receiver.waitFor(3);
    expect(receiver.requests.map(eventIdOf)).toEqual([head.id, head.id, next.id]);
  });

  async function blockedLane() {
    const receiver = await newReceiver();
    receiver.answer(({ index }) => (index === 0 ? REJECT : OK));
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo', fifo_on_dead: 'block' });
    const head = await publish(posthorn, { tenant, type: 'a.b', data: 0 });
    const [dead] = await untilDeliveries(posthorn, head.id, 'dead');
    const next = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [waiting] = await deliveriesOf(posthorn, next.id);
    expect(waiting).toMatchObject({ status: 'pending', waiting_reason: 'ordering' });
    return { receiver, tenant, dead: dead!, head, next };
  }

  test('fifo_on_dead "block": discarding the dead delivery unblocks the lane', async () => {
    const { receiver, dead, next } = await blockedLane();
    expect(receiver.requests).toHaveLength(1);
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead.id}/discard`), 200);
    await untilDeliveries(posthorn, next.id, 'delivered');
  });

  test('fifo_on_dead "block": replaying the dead delivery unblocks the lane and puts it at the tail', async () => {
    const { receiver, dead, head, next } = await blockedLane();
    await replay(dead.id);
    await receiver.waitFor(3);
    expect(receiver.requests.slice(1).map(eventIdOf)).toEqual([next.id, head.id]);
  });

  test('fifo_on_dead "block": undoing a discard blocks the lane again', async () => {
    const { receiver, tenant, dead, next } = await blockedLane();
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead.id}/discard`), 200);
    await untilDeliveries(posthorn, next.id, 'delivered');
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead.id}/restore`), 200);
    const held = await eventually('the lane is blocked', async () => {
      const event = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
      const requests = receiver.requests.length;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return receiver.requests.length === requests && event;
    });
    await replay(dead.id);
    await untilDeliveries(posthorn, held.id, 'delivered');
  });
});

describe('DLQ-5: replayed deliveries obey the limits of the lane', () => {
  test('a bulk replay obeys the rate limit', async () => {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const COUNT = 30;
    await expectStatus(
      posthorn.api('POST', '/v1/events/batch', {
        events: Array.from({ length: COUNT }, (_, n) => ({ tenant, type: 'a.b', data: n })),
      }),
      202,
    );
    await eventually('all are dead', async () => (await deadLetters(tenant)).length === COUNT);
    await posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { rate_limit: { per_second: 20, burst: 5 } });
    receiver.answer(OK);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`), 202);
    const requests = (await receiver.waitFor(2 * COUNT)).slice(COUNT);
    // Compared with the first request. A receiver that hangs for a moment sees it later than it was sent, and the next ones too early.
    for (const [n, { at }] of requests.entries())
      expect(at).toBeGreaterThanOrEqual(requests[0]!.at + ((n - 5) / 20) * 1000 - 500);
  });

  test('DSP-7: a bulk replay to an endpoint that has just recovered starts slowly', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      max_in_flight: 8,
      retry: { schedule: [0], jitter: 'none' },
      breaker: { consecutive: 20, cooldown_seconds: 0.3 },
    });
    await posthorn.api('POST', '/v1/events/batch', {
      events: Array.from({ length: 20 }, (_, n) => ({ tenant, type: 'a.b', data: n })),
    });
    await eventually('all are dead', async () => (await deadLetters(tenant)).length === 20);
    let open = 0;
    const together: number[] = [];
    receiver.answer(async () => {
      open += 1;
      together.push(open);
      await new Promise((resolve) => setTimeout(resolve, 15));
      open -= 1;
      return OK;
    });
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`), 202);
    await receiver.waitFor(40);
    expect(together.slice(0, 2)).toEqual([1, 1]);
    expect(Math.max(...together)).toBeGreaterThan(2);
    expect(Math.max(...together)).toBeLessThanOrEqual(8);
  });
});

test('DLQ-1: a replay restarts the age of a waiting delivery, also for a worker that was about to expire it', async () => {
  const tenant = newTenant();
  const { url } = await newReceiver();
  const endpoint = await createEndpoint(posthorn, { url, tenant, paused: true });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const [waiting] = await deliveriesOf(posthorn, event.id);
  await eventually('the replay is a millisecond later', () => Date.now() > Date.parse(event.created_at) + 1);
  await replay(waiting!.id);
  const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
  onTestFinished(() => pool.end());
  const endpointId = parsePublicId(idPrefixes.endpoint, endpoint.id)!;
  const expire = async (agesFrom: number) => {
    const expired: Settlement = {
      deliveryId: parsePublicId(idPrefixes.delivery, waiting!.id)!,
      endpointId,
      tenant,
      attemptsBefore: 0,
      verdict: { kind: 'dead', reason: 'expired', disableEndpoint: false },
      blocksLane: false,
      fifo: false,
      agesFrom,
      attempt: null,
    };
    return (await settleDeliveries(pool, [expired], [], { id: endpointId, name: 'test' })).size;
  };
  expect(await expire(Date.parse(event.created_at))).toBe(0);
  expect(await deliveryNow(waiting!.id)).toMatchObject({ status: 'pending' });
  expect(await expire(Date.now())).toBe(1);
  expect(await deliveryNow(waiting!.id)).toMatchObject({ status: 'dead', reason: 'expired' });
});
