import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { deliveryIdOf, idPrefixes, parsePublicId } from '../../src/domain/ids.ts';
import { deleteOldSkipped, deleteSurplusSkipped } from '../../src/postgres/queries/skipped-deliveries.ts';
import { eventually } from '../support/eventually.ts';
import {
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

const posthorn = usePosthorn({ env: { POSTHORN_STATS_FLUSH_MS: '100' } });

const disable = (id: string) =>
  expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false }), 200);
const skippedCount = async (id: string): Promise<number> =>
  (await posthorn.api('GET', `/v1/endpoints/${id}`)).body.health.skipped_while_disabled;
const untilSkippedCount = (id: string, count: number) =>
  eventually(`${count} are counted as skipped`, async () => (await skippedCount(id)) === count);

async function disabledEndpoint(settings: object = {}) {
  const tenant = newTenant();
  const receiver = await newReceiver();
  const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, ...settings });
  await disable(id);
  return { tenant, receiver, id };
}

test('HLT-4: an event for a disabled endpoint makes a skipped delivery, which the event and the endpoint show', async () => {
  const { tenant, receiver, id } = await disabledEndpoint();
  const other = await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['both'] });
  const both = await publish(posthorn, { tenant, type: 'both', data: 1 });
  expect(both).toMatchObject({ deliveries: 1, unmatched_reason: null });
  const one = await publish(posthorn, { tenant, type: 'one', data: 1, idempotency_key: `${tenant}-1` });
  expect(one).toMatchObject({ deliveries: 0, unmatched_reason: 'disabled' });
  expect(await publish(posthorn, { tenant, type: 'one', data: 1, idempotency_key: `${tenant}-1` })).toEqual({
    ...one,
    duplicate: true,
  });

  expect(await deliveriesOf(posthorn, one.id)).toMatchObject([
    { endpoint_id: id, status: 'skipped', reason: 'endpoint_disabled', attempts: 0 },
  ]);
  const { body: shown } = await posthorn.api('GET', `/v1/events/${one.id}`);
  expect(shown).toMatchObject({ deliveries: 0, skipped: 1, unmatched_reason: 'disabled' });
  await eventually('the other endpoint has it', async () => {
    const deliveries = await deliveriesOf(posthorn, both.id);
    const statusOf = (endpointId: string) =>
      deliveries.find(({ endpoint_id }) => endpoint_id === endpointId)?.status;
    return deliveries.length === 2 && statusOf(other.id) === 'delivered' && statusOf(id) === 'skipped';
  });
  expect(receiver.requests).toHaveLength(1);
  for (const query of [`tenant=${tenant}&status=skipped`, `endpoint_id=${id}`, `tenant=${tenant}&type=one`]) {
    const list: { body: { data: ShownDelivery[] } } = await posthorn.api('GET', `/v1/deliveries?${query}`);
    expect(list.body.data.map(({ event_id }) => event_id)).toContain(one.id);
  }
  await untilSkippedCount(id, 2);
});

test('the answer says why an event is sent to no endpoint', async () => {
  const tenant = newTenant();
  const { url } = await newReceiver();
  await createEndpoint(posthorn, { url, tenant, events: ['a'], filter: { 'data.n': 1 } });
  await createEndpoint(posthorn, { url, tenant, events: ['b'], channels: ['eu'] });
  const reasonOf = async (event: object): Promise<unknown> =>
    (await publish(posthorn, { tenant, data: { n: 2 }, ...event })).unmatched_reason;
  expect(await reasonOf({ type: 'a' })).toBe('filtered');
  expect(await reasonOf({ type: 'b', channels: ['us'] })).toBe('filtered');
  expect(await reasonOf({ type: 'c' })).toBe('no_endpoint');
  expect(await reasonOf({ type: 'a', data: { n: 1 } })).toBeNull();
});

test('HLT-4: an event that SQL publishes for a disabled endpoint makes a skipped delivery too', async () => {
  const { tenant, id } = await disabledEndpoint();
  const [row] = await posthorn.database.query<{ id: string }>(
    `select posthorn.publish(tenant => '${tenant}', type => 'a.b', data => '{}') as id`,
  );
  const [delivery] = await untilDeliveries(posthorn, row!.id, 'skipped');
  expect(delivery).toMatchObject({ endpoint_id: id, reason: 'endpoint_disabled' });
});

test('HLT-4: what waits when an endpoint is disabled is counted, and disabling it again starts a new count', async () => {
  const tenant = newTenant();
  const { url } = await newReceiver();
  const { id } = await createEndpoint(posthorn, { url, tenant, paused: true });
  for (let n = 0; n < 3; n += 1) await publish(posthorn, { tenant, type: 'a.b', data: n });
  await disable(id);
  await publish(posthorn, { tenant, type: 'a.b', data: 3 });
  await untilSkippedCount(id, 4);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true }), 200);
  expect(await skippedCount(id)).toBe(4);
  await disable(id);
  expect(await skippedCount(id)).toBe(0);
  await publish(posthorn, { tenant, type: 'a.b', data: 4 });
  await untilSkippedCount(id, 1);
});

test('HLT-4: only the newest skipped deliveries are kept, and the count includes the others', async () => {
  const { tenant, id } = await disabledEndpoint();
  const events: { id: string; created_at: string }[] = [];
  for (let n = 0; n < 5; n += 1) events.push(await publish(posthorn, { tenant, type: 'a.b', data: n }));
  await untilSkippedCount(id, 5);
  const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
  onTestFinished(() => pool.end());
  const kept = async (): Promise<number[]> => {
    const lengths: number[] = [];
    for (const event of events) lengths.push((await deliveriesOf(posthorn, event.id)).length);
    return lengths;
  };

  expect(await deleteSurplusSkipped(pool, 3, 100)).toBeGreaterThanOrEqual(2);
  expect(await kept()).toEqual([0, 0, 1, 1, 1]);
  expect(await deleteSurplusSkipped(pool, 3, 100)).toBe(0);
  const cutoffMs = Date.parse(events[3]!.created_at);
  const third = parsePublicId(idPrefixes.event, events[2]!.id)!;
  const finishThirdAt = (ms: number) =>
    pool.query('update posthorn.deliveries set finished_at = to_timestamp($2::float8 / 1000) where id = $1', [
      deliveryIdOf(third, 0),
      ms,
    ]);
  // The delivery was skipped at this time, after it had waited.
  await finishThirdAt(cutoffMs);
  await deleteOldSkipped(pool, cutoffMs, 100);
  expect(await kept()).toEqual([0, 0, 1, 1, 1]);
  await finishThirdAt(cutoffMs - 1);
  expect(await deleteOldSkipped(pool, cutoffMs, 100)).toBe(1);
  expect(await kept()).toEqual([0, 0, 0, 1, 1]);
  expect(await deleteOldSkipped(pool, 0, 100)).toBe(0);
  expect(await skippedCount(id)).toBe(5);
  expect((await posthorn.api('GET', `/v1/events/${events[0]!.id}`)).body).toMatchObject({ skipped: 1 });
});

test('HLT-4, RPL-3: an endpoint that is enabled again gets what it missed in a window of time', async () => {
  const { tenant, receiver, id } = await disabledEndpoint();
  const timesOf: number[] = [];
  for (let n = 0; n < 4; n += 1) {
    const { created_at } = await publish(posthorn, { tenant, type: 'a.b', data: n });
    timesOf.push(Date.parse(created_at));
    await eventually('the next event is accepted later', async () => Date.now() > timesOf[n]! + 1);
  }
  const order = {
    since: new Date(timesOf[1]!).toISOString(),
    until: new Date(timesOf[3]!).toISOString(),
    status: ['skipped'],
  };
  const replay = (body: object) => posthorn.api('POST', `/v1/endpoints/${id}/replay`, body);
  await expectStatus(replay(order), 409);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true }), 200);
  expect((await expectStatus(replay({ ...order, dry_run: true }), 200)).body).toMatchObject({
    count: 2,
    more: false,
  });
  await expectStatus(replay(order), 202);
  const requests = await receiver.waitFor(2);
  expect(requests.map((request) => request.json().data).toSorted()).toEqual([1, 2]);
  await expectStatus(replay({ status: ['skipped'] }), 202);
  await receiver.waitFor(4);
  expect(new Set(receiver.requests.map((request) => request.json().data))).toEqual(new Set([0, 1, 2, 3]));
});
