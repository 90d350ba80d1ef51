import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { idPrefixes, parsePublicId } from '../../src/domain/ids.ts';
import { skipWaiting } from '../../src/postgres/queries/end-waiting.ts';
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

const posthorn = usePosthorn();

/** Delivers an event to another endpoint. Anything that Posthorn would have sent before has been sent by then. */
async function somethingElseIsDelivered(): Promise<void> {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await untilDeliveries(posthorn, event.id, 'delivered');
}

describe('HLT-4: paused', () => {
  test('new deliveries wait until the endpoint is resumed', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const { body: paused } = await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    expect(paused).toMatchObject({ paused: true, enabled: true });

    const events = [];
    for (let n = 0; n < 5; n += 1) events.push(await publish(posthorn, { tenant, type: 'a.b', data: n }));
    expect(events.map(({ deliveries }) => deliveries)).toEqual([1, 1, 1, 1, 1]);
    await somethingElseIsDelivered();
    expect(receiver.requests).toHaveLength(0);
    for (const event of events) {
      expect(await deliveriesOf(posthorn, event.id)).toMatchObject([
        { status: 'pending', waiting_reason: 'paused', attempts: 0 },
      ]);
    }
    expect((await posthorn.api('GET', `/v1/endpoints/${id}`)).body.health).toMatchObject({ waiting: 5 });

    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/resume`), 200);
    const requests = await receiver.waitFor(5);
    expect(requests.map((request) => request.json().data).toSorted()).toEqual([0, 1, 2, 3, 4]);
    for (const event of events) await untilDeliveries(posthorn, event.id, 'delivered');
    expect(receiver.requests).toHaveLength(5);
  });

  test('a retry that is due waits too', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.3], jitter: 'none' },
    });
    receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [waiting] = await untilDeliveries(posthorn, event.id, 'retrying');
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    // A delivery of another endpoint that is due later. When it arrives, the paused one would have arrived too.
    const later = await newReceiver();
    const other = newTenant();
    await createEndpoint(posthorn, { url: later.url, tenant: other });
    const deliver_at = new Date(Date.parse(waiting!.next_attempt_at!) + 100).toISOString();
    await publish(posthorn, { tenant: other, type: 'a.b', data: 1, deliver_at });
    await later.waitFor(1);
    expect(receiver.requests).toHaveLength(1);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/resume`), 200);
    expect(await untilDeliveries(posthorn, event.id, 'delivered')).toMatchObject([{ attempts: 2 }]);
  });
});

describe.each([
  {
    how: 'disabled',
    end: (id: string) => posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false }),
    reason: 'endpoint_disabled',
  },
  {
    how: 'deleted',
    end: (id: string) => posthorn.api('DELETE', `/v1/endpoints/${id}`),
    reason: 'endpoint_deleted',
  },
])('HLT-4: $how', ({ end, reason }) => {
  test('waiting deliveries are skipped, new events are not sent, and history stays', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const delivered = await publish(posthorn, { tenant, type: 'a.b', data: 'delivered' });
    await untilDeliveries(posthorn, delivered.id, 'delivered');
    receiver.answer({ status: 503 });
    const failed = await publish(posthorn, { tenant, type: 'a.b', data: 'failed' });
    await untilDeliveries(posthorn, failed.id, 'retrying');
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    const waiting = await publish(posthorn, { tenant, type: 'a.b', data: 'waiting' });

    expect((await end(id)).status).toBeLessThan(300);
    for (const [event, attempts] of [
      [failed, 1],
      [waiting, 0],
    ] as const) {
      const [delivery] = await untilDeliveries(posthorn, event.id, 'skipped');
      expect(delivery).toMatchObject({ reason, attempts, next_attempt_at: null, waiting_reason: null });
    }
    const after = await publish(posthorn, { tenant, type: 'a.b', data: 'after' });
    const isDisabled = reason === 'endpoint_disabled';
    expect(after).toMatchObject({
      deliveries: 0,
      unmatched_reason: isDisabled ? 'disabled' : 'no_endpoint',
    });

    const list: { body: { data: ShownDelivery[] } } = await posthorn.api(
      'GET',
      `/v1/deliveries?endpoint_id=${id}`,
    );
    expect(list.body.data.map(({ event_id, status }) => [event_id, status])).toEqual([
      ...(isDisabled ? [[after.id, 'skipped']] : []),
      [waiting.id, 'skipped'],
      [failed.id, 'skipped'],
      [delivered.id, 'delivered'],
    ]);
    expect(
      await attemptsOf(posthorn, list.body.data.find(({ event_id }) => event_id === failed.id)!.id),
    ).toMatchObject([{ status_code: 503 }]);
    expect(receiver.requests).toHaveLength(2);
  });

  test('the answer decides about a request that is on the wire', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 1 });
    receiver.hang();
    const onTheWire = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await receiver.waitFor(1);
    const behind = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    await end(id);
    expect(await untilDeliveries(posthorn, behind.id, 'skipped')).toMatchObject([{ reason, attempts: 0 }]);
    receiver.release();
    expect(await untilDeliveries(posthorn, onTheWire.id, 'delivered')).toMatchObject([{ attempts: 1 }]);
    expect(receiver.requests).toHaveLength(1);
  });
});

test('HLT-4: a worker with an outdated endpoint cache skips nothing after the endpoint was enabled again', async () => {
  const tenant = newTenant();
  const { url } = await newReceiver();
  const { id } = await createEndpoint(posthorn, { url, tenant, paused: true });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
  onTestFinished(() => pool.end());
  const uuid = parsePublicId(idPrefixes.endpoint, id)!;
  const skipped = () => skipWaiting(pool, uuid, 'endpoint_disabled', []);
  expect(await skipped()).toBe(0);

  // The endpoint is disabled without a notification. Another transaction enables it, and commits after the query below begins.
  await pool.query(
    "update posthorn.endpoints set enabled = false, disabled_reason = 'manual' where id = $1",
    [uuid],
  );
  const somebody = new pg.Client({ connectionString: posthorn.database.url });
  await somebody.connect();
  onTestFinished(() => somebody.end());
  await somebody.query('begin');
  await somebody.query('update posthorn.endpoints set enabled = true, disabled_reason = null where id = $1', [
    uuid,
  ]);
  const asking = skipped();
  await eventually('it waits to see how that ends', async () => {
    const waiting = await posthorn.database.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and query like '%posthorn.endpoints where id = $1 and (not enabled%'",
    );
    return waiting.length > 0;
  });
  await somebody.query('commit');
  expect(await asking).toBe(0);
  expect(await deliveriesOf(posthorn, event.id)).toMatchObject([{ status: 'pending' }]);
});

test('HLT-4: an endpoint that is enabled again gets new events', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
  const { body: disabled } = await posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false });
  expect(disabled).toMatchObject({ enabled: false, disabled_reason: 'manual' });
  await publish(posthorn, { tenant, type: 'a.b', data: 'missed' });
  const { body: enabled } = await posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true });
  expect(enabled).toMatchObject({ enabled: true, disabled_reason: null });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 'got' });
  await untilDeliveries(posthorn, event.id, 'delivered');
  expect(receiver.requests.map((request) => request.json().data)).toEqual(['got']);
});

test('a deleted endpoint is 404', async () => {
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, { url: 'http://127.0.0.1:9/', tenant });
  await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${id}`), 204);
  for (const [method, path, body] of [
    ['GET', `/v1/endpoints/${id}`],
    ['PATCH', `/v1/endpoints/${id}`, { paused: true }],
    ['DELETE', `/v1/endpoints/${id}`],
    ['POST', `/v1/endpoints/${id}/resume`],
  ] as const) {
    await expectStatus(posthorn.api(method, path, body), 404);
  }
  expect((await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data).toEqual([]);
});
