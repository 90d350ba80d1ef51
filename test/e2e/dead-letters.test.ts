import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  type Call,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const UNDO_MS = 700;
const posthorn = usePosthorn({ env: { POSTHORN_DISCARD_UNDO_MS: String(UNDO_MS) } });

const REJECT = { status: 400 };
const OK = { status: 200 };

interface ShownTask {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
}

async function publishAll(api: Call, tenant: string, count: number, type = 'a.b'): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < count; from += 1000) {
    const events = Array.from({ length: Math.min(1000, count - from) }, (_, n) => ({
      tenant,
      type,
      data: from + n,
    }));
    const { body } = await expectStatus(api('POST', '/v1/events/batch', { events }), 202);
    ids.push(...body.results.map(({ id }: { id: string }) => id));
  }
  return ids;
}

const countDead = async (api: Call, tenant: string): Promise<number> =>
  (await expectStatus(api('POST', '/v1/dead-letters/replay', { filter: { tenant }, dry_run: true }), 200))
    .body.count;

const untilDead = (api: Call, tenant: string, count: number) =>
  eventually(`${count} are dead`, async () => (await countDead(api, tenant)) === count, {
    timeoutMs: 30_000,
  });

const untilTask = (api: Call, id: string, state: string) =>
  eventually<ShownTask>(
    `task ${id} is ${state}`,
    async () => {
      const { body } = await expectStatus(api('GET', `/v1/tasks/${id}`), 200);
      return body.state === state && body;
    },
    { timeoutMs: 30_000 },
  );

const list = async (query: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/dead-letters?${query}`), 200)).body;

describe('DLQ-1: the list', () => {
  test('is newest first, with filters by tenant, endpoint, type, reason and time, in pages', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    receiver.answer(({ json }) => (json().type === 'b.gone' ? { status: 503 } : REJECT));
    const one = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      events: ['a.*'],
    });
    const two = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      events: ['b.*'],
      retry: { schedule: [0], jitter: 'none' },
    });
    const ids: string[] = [];
    for (const type of ['a.x', 'a.y', 'b.gone', 'a.x']) {
      const { id } = await publish(posthorn, { tenant, type, data: 1 });
      await untilDeliveries(posthorn, id, 'dead');
      ids.unshift(id);
    }
    const events = async (query: string) =>
      (await list(query)).data.map(({ event_id }: { event_id: string }) => event_id);
    const of = (...positions: number[]) => positions.map((position) => ids[position]);
    expect(await events(`tenant=${tenant}`)).toEqual(ids);
    expect(await events(`tenant=${tenant}&type=a.x`)).toEqual(of(0, 3));
    expect(await events(`endpoint_id=${one.id}`)).toEqual(of(0, 2, 3));
    expect(await events(`endpoint_id=${two.id}&reason=exhausted`)).toEqual(of(1));
    expect(await events(`tenant=${tenant}&reason=rejected`)).toEqual(of(0, 2, 3));
    const [{ created_at }] = (await list(`tenant=${tenant}&type=b.gone`)).data;
    expect(await events(`tenant=${tenant}&since=${created_at}`)).toEqual(of(0, 1));
    expect(await events(`tenant=${tenant}&until=${created_at}`)).toEqual(of(2, 3));
    expect(await events(`tenant=${tenant}&event_id=${ids[1]}`)).toEqual(of(1));
    expect(await events(`event_id=${ids[1]}&endpoint_id=${one.id}`)).toEqual([]);
    const first = await list(`tenant=${tenant}&limit=3`);
    const rest = await list(`tenant=${tenant}&limit=3&cursor=${first.next_cursor}`);
    expect([...first.data, ...rest.data].map(({ event_id }) => event_id)).toEqual(ids);
    expect(rest.next_cursor).toBeNull();
    await expectStatus(posthorn.api('GET', '/v1/dead-letters?cursor=evt_1'), 400);
    await expectStatus(posthorn.api('GET', '/v1/dead-letters?reason=bad_luck'), 422);
  });

  test('status=dead leaves out what is being replayed, and tasks take the same filters as the list', async () => {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const events = [];
    for (let count = 0; count < 3; count += 1) {
      events.push((await publish(posthorn, { tenant, type: 'a.b', data: count })).id);
      await untilDeliveries(posthorn, events.at(-1)!, 'dead');
    }
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    await expectStatus(posthorn.api('POST', `/v1/events/${events[0]}/replay`), 202);
    const eventsOf = ({ data }: { data: { event_id: string }[] }) => data.map(({ event_id }) => event_id);
    expect(eventsOf(await list(`tenant=${tenant}`))).toEqual([events[2], events[1], events[0]]);
    expect(eventsOf(await list(`tenant=${tenant}&status=dead`))).toEqual([events[2], events[1]]);
    await expectStatus(posthorn.api('GET', '/v1/dead-letters?status=delivered'), 422);

    const filter = { tenant, event_id: events[1], status: 'dead' };
    const order = (settings: object) => posthorn.api('POST', '/v1/dead-letters/discard', settings);
    expect((await expectStatus(order({ filter, dry_run: true }), 200)).body).toMatchObject({ count: 1 });
    const { body: task } = await expectStatus(order({ filter }), 202);
    expect(task).toMatchObject({ total: 1, filter: { event_id: events[1] } });
    await untilTask(posthorn.api, task.id, 'done');
    expect(eventsOf(await list(`tenant=${tenant}`))).toEqual([events[2], events[0]]);
    await expectStatus(order({ filter: { event_id: 'evt_1' } }), 422);
  });

  test('SEC-2: contains only the own tenant, and naming another tenant is 403', async () => {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const [mine, theirs] = [newTenant(), newTenant()];
    for (const tenant of [mine, theirs]) {
      await createEndpoint(posthorn, { url: receiver.url, tenant });
      await publish(posthorn, { tenant, type: 'a.b', data: 1 });
      await untilDead(posthorn.api, tenant, 1);
    }
    const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: mine });
    const asMine = { key: body.key };
    const seen = await posthorn.api('GET', '/v1/dead-letters', undefined, asMine);
    expect(seen.body.data).toMatchObject([{ tenant: mine }]);
    await expectStatus(posthorn.api('GET', `/v1/dead-letters?tenant=${theirs}`, undefined, asMine), 403);
    await expectStatus(
      posthorn.api('POST', '/v1/dead-letters/discard', { filter: { tenant: theirs } }, asMine),
      403,
    );
    // An empty filter selects all dead letters of the caller's own tenant.
    const { body: task } = await expectStatus(
      posthorn.api('POST', '/v1/dead-letters/discard', { filter: {} }, asMine),
      202,
    );
    await untilTask(posthorn.api, task.id, 'done');
    expect(await countDead(posthorn.api, mine)).toBe(0);
    expect(await countDead(posthorn.api, theirs)).toBe(1);
    // A task belongs to a tenant too.
    const other = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: theirs });
    const asTheirs = { key: other.body.key };
    await expectStatus(posthorn.api('GET', `/v1/tasks/${task.id}`, undefined, asMine), 200);
    await expectStatus(posthorn.api('GET', `/v1/tasks/${task.id}`, undefined, asTheirs), 404);
    await expectStatus(posthorn.api('POST', `/v1/tasks/${task.id}/cancel`, undefined, asTheirs), 404);
    const tasks = await posthorn.api('GET', '/v1/tasks', undefined, asTheirs);
    expect(tasks.body.data).toEqual([]);
    const reader = await posthorn.api('POST', '/v1/keys', { scope: 'read', tenant: mine });
    await expectStatus(
      posthorn.api('POST', '/v1/dead-letters/replay', { filter: {} }, { key: reader.body.key }),
      403,
    );
  });
});

describe('DLQ-3: discarding', () => {
  async function oneDead() {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    return { receiver, tenant, event, delivery: delivery! };
  }

  test('is explicit, records who and why, and can be undone for a limited time', async () => {
    const { tenant, delivery } = await oneDead();
    const key = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant })).body;
    const path = `/v1/deliveries/${delivery.id}`;
    const before = (await posthorn.api('GET', path)).body;
    const discarded = await expectStatus(
      posthorn.api('POST', `${path}/discard`, { why: 'a test order' }, { key: key.key }),
      200,
    );
    expect(discarded.body).toMatchObject({
      status: 'discarded',
      reason: key.id,
      discard: { why: 'a test order', reason: 'rejected' },
    });
    expect((await list(`tenant=${tenant}`)).data).toEqual([]);
    const restored = await expectStatus(posthorn.api('POST', `${path}/restore`), 200);
    expect(restored.body).toEqual(before);
    expect((await list(`tenant=${tenant}`)).data).toMatchObject([{ id: delivery.id, status: 'dead' }]);
    await expectStatus(posthorn.api('POST', `${path}/restore`), 409);

    await expectStatus(posthorn.api('POST', `${path}/discard`), 200);
    await new Promise((resolve) => setTimeout(resolve, UNDO_MS + 50));
    await expectStatus(posthorn.api('POST', `${path}/restore`), 409);
    expect((await posthorn.api('GET', path)).body).toMatchObject({ status: 'discarded', reason: 'admin' });
  });

  test('is 409 for a delivery that is not dead or is being replayed', async () => {
    const { receiver, event, delivery } = await oneDead();
    const path = `/v1/deliveries/${delivery.id}`;
    receiver.hang();
    await expectStatus(posthorn.api('POST', `${path}/replay`), 202);
    await receiver.waitFor(2);
    await expectStatus(posthorn.api('POST', `${path}/discard`), 409);
    receiver.answer(OK);
    receiver.release();
    await untilDeliveries(posthorn, event.id, 'delivered');
    await expectStatus(posthorn.api('POST', `${path}/discard`), 409);
    await expectStatus(posthorn.api('POST', `${path}/discard`, { because: 1 }), 422);
  });
});

describe('DLQ-2: by filter, as a background task', () => {
  test('a dry run only counts, and a task changes matching deliveries and shows its progress', async () => {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    const on = await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['on.*'] });
    const off = await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['off.*'] });
    await publishAll(posthorn.api, tenant, 12, 'on.x');
    await publishAll(posthorn.api, tenant, 5, 'on.y');
    await publishAll(posthorn.api, tenant, 3, 'off.x');
    await untilDead(posthorn.api, tenant, 20);
    const order = (action: string, filter: object, rest = {}) =>
      posthorn.api('POST', `/v1/dead-letters/${action}`, { filter: { tenant, ...filter }, ...rest });
    expect((await order('replay', { type: 'on.x' }, { dry_run: true })).body).toMatchObject({ count: 12 });
    expect(
      (await order('discard', { endpoint_id: on.id, type: 'on.y' }, { dry_run: true })).body,
    ).toMatchObject({
      count: 5,
    });
    expect(receiver.requests).toHaveLength(20);
    await posthorn.api('PATCH', `/v1/endpoints/${off.id}`, { enabled: false });
    receiver.answer(OK);

    const discard = (await expectStatus(order('discard', { type: 'on.y' }, { why: 'old' }), 202)).body;
    expect(discard).toMatchObject({ kind: 'discard', total: 5 });
    expect(await untilTask(posthorn.api, discard.id, 'done')).toMatchObject({
      total: 5,
      done: 5,
      failed: 0,
      error: null,
    });
    expect((await order('replay', {}, { dry_run: true })).body).toMatchObject({ count: 15, left_out: 3 });
    const replay = (await expectStatus(order('replay', {}), 202)).body;
    // Dead letters of the disabled endpoint stay dead.
    expect(await untilTask(posthorn.api, replay.id, 'done')).toMatchObject({
      kind: 'replay',
      total: 15,
      done: 12,
      failed: 3,
      left_out: 3,
      error: '3 belong to endpoints that are disabled or deleted.',
    });
    await receiver.waitFor(32);
    await untilDead(posthorn.api, tenant, 3);
    const { data } = await list(`tenant=${tenant}`);
    const ids = data.slice(0, 2).map(({ id }: { id: string }) => id);
    expect((await order('discard', { ids }, { dry_run: true })).body).toMatchObject({ count: 2 });
    const { body: tasks } = await posthorn.api('GET', `/v1/tasks?tenant=${tenant}`);
    expect(tasks.data.map(({ id }: ShownTask) => id)).toEqual([replay.id, discard.id]);
    const countTasks = async (query: string): Promise<number> =>
      (await posthorn.api('GET', `/v1/tasks?tenant=${tenant}&${query}`)).body.data.length;
    expect(await countTasks('state=done')).toBe(2);
    expect(await countTasks('state=running')).toBe(0);
    const before = new Date(Date.parse(discard.created_at) - 60_000).toISOString();
    expect(await countTasks(`until=${before}`)).toBe(0);
    expect(await countTasks(`since=${before}`)).toBe(2);
    const countGroups = async (query: string): Promise<number> =>
      (await posthorn.api('GET', `/v1/dead-letters/groups?tenant=${tenant}&${query}`)).body.data.length;
    // The groups count deliveries that are being replayed, too.
    await eventually(
      'the replays are recorded',
      async () => (await countGroups(`until=${discard.created_at}`)) === 1,
    );
    expect(await countGroups(`since=${discard.created_at}`)).toBe(0);
    const groups = await posthorn.api('GET', `/v1/dead-letters/groups?tenant=${tenant}`);
    expect(groups.body.data[0]).toMatchObject({ description: '', url: expect.stringContaining('http') });
    await expectStatus(posthorn.api('POST', `/v1/tasks/${replay.id}/cancel`), 409);
    await expectStatus(posthorn.api('POST', '/v1/dead-letters/replay', {}), 422);
    await expectStatus(posthorn.api('GET', '/v1/tasks/task_00000000000000000000000000'), 404);
  });

  test('a task selects deliveries of an endpoint by time and state', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    const [early] = await publishAll(posthorn.api, tenant, 1);
    await untilDeliveries(posthorn, early!, 'delivered');
    await new Promise((resolve) => setTimeout(resolve, 50));
    const since = new Date().toISOString();
    receiver.answer(REJECT);
    await publishAll(posthorn.api, tenant, 3);
    await untilDead(posthorn.api, tenant, 3);
    receiver.answer(OK);
    await publishAll(posthorn.api, tenant, 2);
    await receiver.waitFor(6);
    const order = async (body: object, state = 'done') => {
      const { body: task } = await expectStatus(
        posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`, body),
        202,
      );
      return untilTask(posthorn.api, task.id, state);
    };
    await eventually('all have settled', async () => {
      const { body } = await posthorn.api('GET', `/v1/endpoints/${endpoint.id}`);
      return body.health.waiting === 0;
    });
    expect(await order({ since, status: 'delivered' })).toMatchObject({ total: 2, done: 2 });
    await receiver.waitFor(8);
    // By default, the replay selects dead and skipped deliveries.
    expect(await order({ until: since })).toMatchObject({ total: 0, done: 0 });
    expect(await order({})).toMatchObject({ total: 3, done: 3 });
    await receiver.waitFor(11);
    const counted = await expectStatus(
      posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`, {
        status: ['delivered', 'dead'],
        until: since,
        dry_run: true,
      }),
      200,
    );
    expect(counted.body).toEqual({ count: 1, more: false, left_out: 0 });
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/replay`, { since: 'noon' }), 422);
  });

  test('a task that is cancelled between two chunks keeps its changes and makes no more', async () => {
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 50 });
    const COUNT = 1200;
    await publishAll(posthorn.api, tenant, COUNT);
    await untilDead(posthorn.api, tenant, COUNT);
    receiver.answer(OK);
    // A lock on the endpoint, as during a change of it, blocks the first chunk.
    const held = new pg.Client({ connectionString: posthorn.database.url });
    await held.connect();
    await held.query('begin');
    await held.query('select from posthorn.endpoints where tenant = $1 for update', [tenant]);
    const { body: task } = await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/replay`), 202);
    const waitForLock = (what: string, statement: string) =>
      eventually(what, async () => {
        const waiting = await posthorn.database.query(
          `select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple')
              and query ~ $1`,
          [statement],
        );
        return waiting.length > 0;
      });
    await waitForLock('the chunk waits for the endpoint', 'posthorn.tasks');
    const cancelled = posthorn.api('POST', `/v1/tasks/${task.id}/cancel`);
    await waitForLock('the cancel waits for the chunk', "update posthorn.tasks set state = 'cancelled'");
    await held.query('commit');
    await held.end();
    const { body } = await expectStatus(cancelled, 200);
    expect(body).toMatchObject({ state: 'cancelled', total: COUNT, failed: 0 });
    // The next chunk may start before the cancellation takes effect.
    expect([500, 1000]).toContain(body.done);
    await receiver.waitFor(COUNT + body.done);
    await untilDead(posthorn.api, tenant, COUNT - body.done);
    expect(receiver.requests).toHaveLength(COUNT + body.done);
    // Cancelling it again is not an error.
    await expectStatus(posthorn.api('POST', `/v1/tasks/${task.id}/cancel`), 200);
  });

  test('after kill -9 in the middle of 1,300 deliveries, another process continues, and each is replayed once', async () => {
    const COUNT = 1300;
    const database = await createTestDatabase();
    const env = { POSTHORN_TASK_TAKEOVER_MS: '500ms' };
    const receiver = await newReceiver();
    receiver.answer(REJECT);
    const tenant = newTenant();
    const doomed = await startTestPosthorn({ database, env });
    const endpoint = await createEndpoint(doomed, { url: receiver.url, tenant, max_in_flight: 20 });
    const ids = await publishAll(doomed.api, tenant, COUNT);
    await untilDead(doomed.api, tenant, COUNT);
    receiver.answer(({ index }) => ({ ...OK, delayMs: index % 20 }));
    // A lock on a dead letter of the third chunk blocks that chunk.
    const held = new pg.Client({ connectionString: database.url });
    await held.connect();
    await held.query('begin');
    await held.query(
      'select from posthorn.dead_letters where id in (select id from posthorn.dead_letters order by id offset 1200 limit 1) for update',
    );
    const { body: task } = await expectStatus(
      doomed.api('POST', '/v1/dead-letters/replay', { filter: { endpoint_id: endpoint.id } }),
      202,
    );
    expect(task.total).toBe(COUNT);
    await eventually('two chunks are done, the third waits', async () => {
      const { body } = await doomed.api('GET', `/v1/tasks/${task.id}`);
      return body.done === 1000;
    });
    // The killed process has sent its statement. PostgreSQL commits it although the client is gone.
    await doomed.kill('SIGKILL');
    await held.query('commit');
    await held.end();
    const heir = await startTestPosthorn({ database, env });
    expect(await untilTask(heir.api, task.id, 'done')).toMatchObject({
      total: COUNT,
      done: COUNT,
      failed: 0,
    });
    await eventually('all are delivered', async () => (await countWaiting(heir.api, endpoint.id)) === 0, {
      timeoutMs: 30_000,
    });
    expect(await countDead(heir.api, tenant)).toBe(0);
    const counts = arrivals(receiver.requests);
    const repeated = ids.filter((id) => counts.get(id)! > 2);
    expect(ids.filter((id) => (counts.get(id) ?? 0) < 2)).toEqual([]);
    // Only requests that were on the wire or not yet recorded when the process died may arrive twice.
    expect(repeated.length).toBeLessThanOrEqual(200);
    const [row] = await database.query<{ most: number; least: number }>(
      'select max(replays) as most, min(replays) as least from posthorn.deliveries',
    );
    expect(row).toEqual({ most: 1, least: 1 });
    await heir.stop();
    await database.drop();
  });
});

const countWaiting = async (api: Call, endpointId: string): Promise<number> =>
  (await api('GET', `/v1/endpoints/${endpointId}`)).body.health.waiting;
