/** An event for thousands of endpoints is accepted at once and queued in slices, whatever happens meanwhile. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { publicId } from '../../src/domain/ids.ts';
import { ADVISORY_LOCKS } from '../../src/postgres/advisory-locks.ts';
import { eventually } from '../support/eventually.ts';
import { createManyEndpoints } from '../support/many-endpoints.ts';
import { expectStatus, newReceiver, newTenant, publish, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn();
const NOWHERE = 'http://127.0.0.1:9';
const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

/** Keeps all processes from writing slices, until the returned function is called. */
async function holdSlices(): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  let isOpen = true;
  const release = async (): Promise<void> => {
    if (isOpen) await client.end();
    isOpen = false;
  };
  onTestFinished(release);
  await client.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.fanOuts]);
  return release;
}

const unwrittenOf = async (eventId: string): Promise<number> =>
  (await expectStatus(posthorn.api('GET', `/v1/events/${eventId}`), 200)).body.unwritten_deliveries;

const untilWritten = (eventId: string) =>
  eventually('all deliveries are written', async () => (await unwrittenOf(eventId)) === 0);

test('the answer counts all deliveries, and each endpoint gets exactly one', async () => {
  const tenant = newTenant();
  await createManyEndpoints(posthorn.database, { tenant, url: NOWHERE, count: 4_500 });
  const release = await holdSlices();
  const event = { tenant, type: 'a.b', data: 1, deliver_at: tomorrow(), idempotency_key: 'once' };
  const accepted = await publish(posthorn, event);
  expect(accepted).toMatchObject({ deliveries: 4_500, duplicate: false });
  expect(await unwrittenOf(accepted.id)).toBe(4_250);
  expect(await publish(posthorn, event)).toMatchObject({
    id: accepted.id,
    deliveries: 4_500,
    duplicate: true,
  });
  await release();
  await untilWritten(accepted.id);
  const [counts] = await posthorn.database.query(
    `select count(*)::int as rows, count(distinct id)::int as ids, count(distinct endpoint_id)::int as endpoints
       from posthorn.queue where tenant = $1 and due_at > now()`,
    [tenant],
  );
  expect(counts).toEqual({ rows: 4_500, ids: 4_500, endpoints: 4_500 });
});

test('endpoints that are disabled when the event is accepted, or disabled or deleted before their slice is written, get a skipped delivery', async () => {
  const tenant = newTenant();
  const ids = await createManyEndpoints(posthorn.database, { tenant, url: NOWHERE, count: 2_011 });
  const before = publicId('ep', ids[7]!);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${before}`, { enabled: false }), 200);
  const release = await holdSlices();
  const accepted = await publish(posthorn, { tenant, type: 'a.b', data: 1, deliver_at: tomorrow() });
  expect(accepted.deliveries).toBe(2_010);
  const { id } = accepted;
  const unwritten = await posthorn.database.query<{ id: string }>(
    'select unnest(endpoint_ids) as id from posthorn.fan_out_slices where tenant = $1 and not was_disabled',
    [tenant],
  );
  const [disabled, deleted] = unwritten.map((endpoint) => publicId('ep', endpoint.id));
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${disabled}`, { enabled: false }), 200);
  await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${deleted}`), 204);
  await release();
  await untilWritten(id);
  const { body } = await posthorn.api('GET', `/v1/events/${id}/deliveries?status=skipped`);
  const skipped = body.data.map((delivery: Record<string, unknown>) => [
    delivery.endpoint_id,
    delivery.reason,
  ]);
  expect(new Map(skipped)).toEqual(
    new Map([
      [before, 'endpoint_disabled'],
      [disabled, 'endpoint_disabled'],
      [deleted, 'endpoint_deleted'],
    ]),
  );
  const [{ waiting }] = (await posthorn.database.query(
    'select count(*)::int as waiting from posthorn.queue where tenant = $1',
    [tenant],
  )) as [{ waiting: number }];
  expect(waiting).toBe(2_008);
});

test('a FIFO endpoint gets the event of an unwritten slice before later events', async () => {
  const tenant = newTenant();
  const receiver = await newReceiver();
  await createManyEndpoints(posthorn.database, {
    tenant,
    url: receiver.url,
    count: 2_001,
    config: { ordering: 'fifo' },
    paused: true,
  });
  const release = await holdSlices();
  const first = await publish(posthorn, { tenant, type: 'a.b', data: 'first' });
  const [last] = await posthorn.database.query<{ id: string }>(
    'select unnest(endpoint_ids) as id from posthorn.fan_out_slices where tenant = $1',
    [tenant],
  );
  const endpoint = publicId('ep', last!.id);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${endpoint}`, { paused: false }), 200);
  const second = await publish(posthorn, { tenant, type: 'a.b', data: 'second', endpoint_ids: [endpoint] });
  const { body } = await posthorn.api('GET', `/v1/events/${second.id}/deliveries`);
  expect(body.data).toMatchObject([{ status: 'pending', waiting_reason: 'ordering' }]);
  // Its lane is read when this delivery is committed. Another endpoint of the tenant proves that lanes are being read.
  const [other] = await posthorn.database.query<{ id: string }>(
    'select endpoint_id as id from posthorn.queue where tenant = $1 and endpoint_id <> $2 limit 1',
    [tenant, last!.id],
  );
  await posthorn.api('PATCH', `/v1/endpoints/${publicId('ep', other!.id)}`, { paused: false });
  await receiver.waitFor(1);
  await publish(posthorn, { tenant, type: 'a.b', data: 'third', endpoint_ids: [endpoint] });
  expect(receiver.requests.map((request) => request.json().data)).toEqual(['first']);
  await release();
  await receiver.waitFor(4);
  const { path } = receiver.requests.at(-1)!;
  const received = receiver.requests.filter((request) => request.path === path);
  expect(received.map((request) => request.json().data)).toEqual(['first', 'second', 'third']);
  expect(received[0]!.headers['webhook-id']).toBe(first.id);
});

test('a replay of an event with thousands of deliveries is a task, which sends the deliveries of this event only', async () => {
  const tenant = newTenant();
  await createManyEndpoints(posthorn.database, { tenant, url: NOWHERE, count: 2_100, paused: true });
  const events = ['replayed', 'other'].map((data) => ({ tenant, type: 'a.b', data, deliver_at: tomorrow() }));
  const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
  const [replayed, other] = body.results.map(({ id }: { id: string }) => id);
  await Promise.all([untilWritten(replayed), untilWritten(other)]);
  const answer = await expectStatus(posthorn.api('POST', `/v1/events/${replayed}/replay`), 202);
  expect(answer.body).toEqual({ deliveries: 2_100, skipped: 0, task_id: expect.stringMatching(/^task_/) });
  const task = await eventually('the task has ended', async () => {
    const shown = (await expectStatus(posthorn.api('GET', `/v1/tasks/${answer.body.task_id}`), 200)).body;
    return shown.state === 'done' && shown;
  });
  expect(task).toMatchObject({ done: 2_100, failed: 0, filter: { event_id: replayed } });
  const [counts] = await posthorn.database.query(
    `select count(*) filter (where trigger = 'replay' and (due_at is null or due_at <= now()))::int as due,
            count(*) filter (where due_at > now())::int as scheduled
       from posthorn.queue where tenant = $1`,
    [tenant],
  );
  expect(counts).toEqual({ due: 2_100, scheduled: 2_100 });
});
