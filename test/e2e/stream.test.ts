import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { openTail, type TailReader } from '../support/live-tail.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

const OTHER_PER_SECOND = 300;

let database: TestDatabase;
let posthorn: TestPosthorn;
let other: TestPosthorn;

beforeAll(async () => {
  database = await createTestDatabase();
  const start = (perSecond: number) =>
    startTestPosthorn({
      database,
      env: {
        POSTHORN_STREAM_MESSAGES_PER_SECOND: String(perSecond),
        POSTHORN_STREAM_BUFFER_BYTES: '16KiB',
        POSTHORN_STREAM_CLIENTS_PER_KEY: '4',
        POSTHORN_STREAM_HEARTBEAT_MS: '100ms',
      },
    });
  [posthorn, other] = await Promise.all([start(100_000), start(OTHER_PER_SECOND)]);
  await eventually('each owns half of the shards', async () => {
    const halves = 'select owner from posthorn.shards group by owner having count(*) = 128';
    return (await database.query(halves)).length === 2;
  });
});
afterAll(async () => {
  await Promise.all([posthorn?.stop(), other?.stop()]);
  await database?.drop();
});

const keyOf = async (tenant: string) =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant }), 201)).body;

describe('the live tail', () => {
  test('shows events as they are accepted and attempts as they are settled', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.05], jitter: 'none' },
    });
    receiver.answer(({ headers }) => ({
      status:
        headers['posthorn-event-type'] === 'order.paid' && headers['posthorn-attempt'] === '1' ? 503 : 200,
    }));
    const tail = await openTail(posthorn, `tenant=${tenant}`);
    // A tail does not show what the sending process did before it knew of the tail.
    await eventually('the process that sends knows of the tail', async () => {
      await publish(posthorn, { tenant, type: 'probe', data: 1 });
      return tail.of('attempt').length > 0;
    });
    const event = await publish(posthorn, { tenant, type: 'order.paid', data: 1 });
    const shown = (kind: string) =>
      tail.of(kind).filter(({ data }) => JSON.stringify(data).includes(event.id));
    await tail.find(
      'it is delivered',
      ({ data }) => data.event_id === event.id && data.status === 'delivered',
    );
    // The process that accepts and the one that sends report separately.
    await eventually('it is shown as accepted', () => shown('event.accepted').length > 0);
    expect(shown('event.accepted')).toEqual([
      {
        event: 'event.accepted',
        data: { id: event.id, type: 'order.paid', tenant, created_at: event.created_at, deliveries: 1 },
      },
    ]);
    const [delivery] = await deliveriesOf(posthorn, event.id);
    const attempt = {
      delivery_id: delivery!.id,
      event_id: event.id,
      endpoint_id: endpoint.id,
      tenant,
      event_type: 'order.paid',
      duration_ms: expect.any(Number),
      trigger: 'auto',
      at: expect.stringMatching(/Z$/),
    };
    expect(shown('attempt').map(({ data }) => data)).toEqual([
      {
        ...attempt,
        number: 1,
        outcome: 'retry',
        status: 'retrying',
        status_code: 503,
        error_class: 'http_5xx',
      },
      {
        ...attempt,
        number: 2,
        outcome: 'delivered',
        status: 'delivered',
        status_code: 200,
        error_class: null,
      },
    ]);
    await eventually('it says that it still lives', () => tail.comments() > 0);
  });

  test('shows the events of every process', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoints = await Promise.all(
      Array.from({ length: 8 }, () => createEndpoint(posthorn, { url: receiver.url, tenant })),
    );
    const [here, there] = await Promise.all([openTail(posthorn), openTail(other, `tenant=${tenant}`)]);
    const events = [
      await publish(posthorn, { tenant, type: 'a.b', data: 1 }),
      await publish(other, { tenant, type: 'a.b', data: 1 }),
    ];
    const [shards] = await database.query(
      'select count(distinct owner)::int as owners from posthorn.shards where owner is not null',
    );
    expect(shards).toEqual({ owners: 2 });
    for (const tail of [here, there]) {
      // Messages of one process arrive in order, messages of two processes do not.
      await eventually(
        'all is shown',
        () => tail.of('attempt').length === 16 && tail.of('event.accepted').length === 2,
        { saw: () => tail.shown },
      );
      expect(new Set(tail.of('attempt').map(({ data }) => data.endpoint_id))).toEqual(
        new Set(endpoints.map(({ id }) => id)),
      );
      expect(new Set(tail.of('event.accepted').map(({ data }) => data.id))).toEqual(
        new Set(events.map(({ id }) => id)),
      );
    }
  });

  test('can be filtered by endpoint, type and status', async () => {
    const tenant = newTenant();
    const [good, bad] = [await newReceiver(), await newReceiver()];
    bad.answer({ status: 400 });
    const one = await createEndpoint(posthorn, { url: good.url, tenant });
    const two = await createEndpoint(posthorn, { url: bad.url, tenant });
    const tails = await Promise.all(
      [`endpoint_id=${one.id}`, `tenant=${tenant}&type=x.y`, 'outcome=dead', 'status=dead'].map(
        (query, index) => openTail(index < 2 ? posthorn : other, query),
      ),
    );
    for (const type of ['a.b', 'x.y', 'a.b']) await publish(posthorn, { tenant, type, data: 1 });
    const attempts = (tail: (typeof tails)[number]) =>
      tail.of('attempt').map(({ data }) => [data.endpoint_id, data.event_type, data.status]);
    const expected = [
      [
        [one.id, 'a.b', 'delivered'],
        [one.id, 'x.y', 'delivered'],
        [one.id, 'a.b', 'delivered'],
      ],
      [
        [one.id, 'x.y', 'delivered'],
        [two.id, 'x.y', 'dead'],
      ],
      [
        [two.id, 'a.b', 'dead'],
        [two.id, 'x.y', 'dead'],
        [two.id, 'a.b', 'dead'],
      ],
    ];
    for (const [index, tail] of tails.entries()) {
      const wanted = expected[Math.min(index, 2)]!;
      await eventually('all that fit are shown', () => attempts(tail).length >= wanted.length);
      expect(attempts(tail).toSorted()).toEqual(wanted.toSorted());
    }
    expect(tails.map((tail) => tail.of('event.accepted').length)).toEqual([0, 1, 0, 0]);
    await expectStatus(posthorn.api('GET', '/v1/stream?endpoint_id=nonsense'), 422);
    await expectStatus(posthorn.api('GET', '/v1/stream?status=dead&outcome=retry'), 422);
    await expectStatus(posthorn.api('GET', '/v1/stream?status=lost'), 422);
    await expectStatus(posthorn.api('GET', '/v1/stream', undefined, { key: null }), 401);
  });

  test('shows a tenant only its own messages, whatever it requests', async () => {
    const [mine, theirs] = [newTenant(), newTenant()];
    const receiver = await newReceiver();
    const foreign = await createEndpoint(posthorn, { url: receiver.url, tenant: theirs });
    await createEndpoint(posthorn, { url: receiver.url, tenant: mine });
    const { key } = await keyOf(mine);
    const tails = [
      await openTail(posthorn, '', { key }),
      await openTail(other, '', { key }),
      await openTail(posthorn, `endpoint_id=${foreign.id}`, { key }),
    ];
    await expectStatus(posthorn.api('GET', `/v1/stream?tenant=${theirs}`, undefined, { key }), 403);
    for (const from of [posthorn, other]) {
      await untilDeliveries(
        posthorn,
        (await publish(from, { tenant: theirs, type: 'a.b', data: 1 })).id,
        'delivered',
      );
      await posthorn.api('PATCH', `/v1/endpoints/${foreign.id}`, { description: `seen by ${from.url}` });
      await publish(from, { tenant: mine, type: 'a.b', data: 1 });
    }
    for (const tail of tails.slice(0, 2))
      await eventually('its own are shown', () => tail.of('attempt').length === 2);
    for (const tail of tails)
      expect(tail.shown.filter(({ event, data }) => event !== 'ready' && data.tenant !== mine)).toEqual([]);
    expect(tails[2]!.shown.map(({ event }) => event)).toEqual(['ready']);
  });

  test('shows paused and disabled endpoints and opened circuits', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    receiver.answer({ status: 500 });
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      breaker: { consecutive: 1 },
      retry: { schedule: [0, 60], jitter: 'none' },
    });
    const tails = [await openTail(posthorn, `endpoint_id=${id}`), await openTail(other, `endpoint_id=${id}`)];
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const show = (what: string, fits: object) =>
      Promise.all(
        tails.map((tail) =>
          tail.find(
            what,
            ({ event, data }) =>
              event === 'endpoint' && Object.entries(fits).every(([name, value]) => data[name] === value),
          ),
        ),
      );
    await show('the circuit opens', { endpoint_id: id, tenant, change: 'circuit', circuit: 'open' });
    await posthorn.api('POST', `/v1/endpoints/${id}/pause`);
    await show('it is paused', { change: 'settings', paused: true, enabled: true });
    await posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false });
    await show('it is disabled', { change: 'settings', enabled: false, disabled_reason: 'manual' });
  });

  test('shows a sample of too many messages and how many are missing', async () => {
    const tenant = newTenant();
    const tail = await openTail(posthorn, `tenant=${tenant}`);
    const events = Array.from({ length: 200 }, () => ({ tenant, type: 'a.b', data: 1 }));
    await expectStatus(other.api('POST', '/v1/events/batch', { events }), 202);
    const skipped = () => tail.of('sampled').reduce((sum, { data }) => sum + data.skipped, 0);
    await eventually('all are shown or counted', () => tail.of('event.accepted').length + skipped() === 200);
    expect(skipped()).toBeGreaterThan(0);
    expect(tail.of('event.accepted').length).toBeGreaterThanOrEqual(OTHER_PER_SECOND / 10);
  });

  // The system's own buffers hold all of this; that more is dropped is shown in stream-client.test.ts.
  test('is not blocked by a client that does not read, and neither are deliveries', async () => {
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant, events: ['small'] });
    const [slow, quick] = [
      await openTail(posthorn, `tenant=${tenant}`),
      await openTail(posthorn, `tenant=${tenant}`),
    ];
    slow.pause();
    const total = 3_000;
    const type = 'long.'.padEnd(128, 'x');
    for (let sent = 0; sent < total; sent += 500) {
      const events = Array.from({ length: 500 }, () => ({ tenant, type, data: 1 }));
      await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    }
    const dropped = (tail: TailReader) => tail.of('dropped').reduce((sum, { data }) => sum + data.count, 0);
    const accountedFor = (tail: TailReader) =>
      tail.of('event.accepted').length + tail.of('attempt').length + dropped(tail);
    await eventually('the quick one is up to date', () => accountedFor(quick) === total);
    const event = await publish(posthorn, { tenant, type: 'small', data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
    await quick.find('what came last', ({ data }) => data.status === 'delivered');
    slow.resume();
    await eventually('the slow one catches up', () => accountedFor(slow) === total + 2);
    expect(dropped(quick)).toBe(0);
  });

  test('has a limit per key, and ends when the key is revoked', async () => {
    const tenant = newTenant();
    const { id, key } = await keyOf(tenant);
    const tails = await Promise.all(Array.from({ length: 4 }, () => openTail(posthorn, '', { key })));
    const refused = await expectStatus(posthorn.api('GET', '/v1/stream', undefined, { key }), 429);
    expect(refused.body.code).toBe('rate_limited');
    expect(refused.headers['retry-after']).toBe('10');
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${id}`), 204);
    await Promise.all(tails.map(({ ended }) => ended));
  });

  test.each([{ scopes: ['events:publish'] }, { allowed_ips: ['203.0.113.7'] }])(
    'ends when the key may no longer open it: %j',
    async (narrowed) => {
      const { id, key } = await keyOf(newTenant());
      const tail = await openTail(posthorn, '', { key });
      await expectStatus(posthorn.api('PATCH', `/v1/keys/${id}`, narrowed), 200);
      await tail.ended;
    },
  );

  test('does not count its heartbeats against the rate limit of the key', async () => {
    const tenant = newTenant();
    const limited = { scope: 'tenant', tenant, rate_limit: { per_second: 0.001, burst: 2 } };
    const { key } = (await expectStatus(posthorn.api('POST', '/v1/keys', limited), 201)).body;
    const tail = await openTail(posthorn, '', { key });
    await eventually('five signs of life', () => tail.comments() >= 5);
    await expectStatus(posthorn.api('GET', '/v1/endpoints', undefined, { key }), 200);
    await expectStatus(posthorn.api('GET', '/v1/endpoints', undefined, { key }), 429);
  });

  test('ends at once when its process stops, and tails of other processes continue', async () => {
    const tenant = newTenant();
    const [ending, staying] = [await openTail(other), await openTail(posthorn, `tenant=${tenant}`)];
    const startedAt = performance.now();
    await Promise.all([other.stop(), ending.ended]);
    // Long before the server cuts open connections.
    expect(performance.now() - startedAt).toBeLessThan(4_500);
    await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await staying.find('the event', ({ event }) => event === 'event.accepted');
  });
});
