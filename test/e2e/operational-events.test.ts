/** OBS-4: operational events are delivered by the same engine, to those who ask for them by name, and never loop. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import type { Receiver, RecordedRequest } from '../support/receiver.ts';

const WINDOW_MS = 400;
const THRESHOLD = 4;
const SETTINGS = {
  POSTHORN_OPERATIONAL_EVENTS_MS: '30ms',
  POSTHORN_OPERATIONAL_LEVELS_MS: '30ms',
  POSTHORN_DEAD_EVENT_WINDOW_MS: `${WINDOW_MS}ms`,
  POSTHORN_DEAD_LETTERS_THRESHOLD: String(THRESHOLD),
  POSTHORN_QUEUE_AGE_THRESHOLD_MS: '400ms',
  POSTHORN_PUBLIC_URL: 'https://posthorn.test',
};
const OPERATOR = 'posthorn';

const posthorn = usePosthorn({ inProcess: true, env: SETTINGS });

/** Fails twice, is dead, and has an open circuit by then. */
const FRAGILE = {
  retry: { schedule: [0, 0.01], jitter: 'none' },
  breaker: { consecutive: 2, cooldown_seconds: 0.1, max_cooldown_seconds: 0.1 },
};

async function subscriber(tenant: string, events: string[], part: Record<string, unknown> = {}) {
  const receiver = await newReceiver();
  const settings = { url: receiver.url, tenant, events, ...(tenant === OPERATOR && { operator: true }) };
  const endpoint = await createEndpoint(posthorn, { ...settings, ...part });
  onTestFinished(async () => void (await posthorn.api('DELETE', `/v1/endpoints/${endpoint.id}`)));
  return { receiver, endpoint };
}

const operator = (events = ['posthorn.*']) => subscriber(OPERATOR, events);
const isOf = (type: string, tenant: string) => (request: RecordedRequest) =>
  request.json().type === type && request.json().data.tenant === tenant;
async function told(receiver: Receiver, type: string, tenant: string) {
  const requests = await receiver.waitFor(isOf(type, tenant));
  return requests.filter(isOf(type, tenant)).map((request) => request.json());
}
const change = (id: string, patch: Record<string, unknown>) =>
  expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, patch), 200);

/** Waits until no delivery, outbox row or note is left. */
async function untilAtRest(database: TestDatabase): Promise<void> {
  await eventually('nothing waits any more', async () => {
    const [row] = await database.query<{ left: number }>(
      `select (select count(*) from posthorn.queue) + (select count(*) from posthorn.outbox)
            + (select count(*) from posthorn.operational_notes) as left`,
    );
    return Number(row!.left) === 0;
  });
}

describe('OBS-4: operational events', () => {
  test('report the number of dead letters once above the threshold and once far below it', async () => {
    const { receiver } = await operator(['posthorn.dead_letters.threshold']);
    const { receiver: rejects, endpoint } = await subscriber(newTenant(), ['*'], { breaker: null });
    // Those of operational events do not count.
    await posthorn.database.query(
      `insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, blocks_lane, dead_at, tenant, event_type)
       select gen_random_uuid(), gen_random_uuid(), 'rejected', 1, 0, false, now(), 'nobody', 'posthorn.queue.age'
         from generate_series(1, $1)`,
      [THRESHOLD],
    );
    rejects.answer({ status: 400 });
    for (let n = 0; n < THRESHOLD; n += 1)
      await publish(posthorn, { type: 'a.b', tenant: endpoint.tenant, data: n });
    const [above] = await receiver.waitFor(1);
    expect(above!.json()).toMatchObject({
      type: 'posthorn.dead_letters.threshold',
      data: {
        state: 'above',
        threshold: THRESHOLD,
        dead_letters: THRESHOLD,
        console_url: 'https://posthorn.test/console/dead-letters',
      },
    });
    const dead = (await posthorn.api('GET', `/v1/dead-letters?tenant=${endpoint.tenant}`)).body.data;
    // At half of the threshold there is no event yet.
    for (const { id } of dead.slice(0, THRESHOLD / 2))
      await posthorn.api('POST', `/v1/deliveries/${id}/discard`);
    await publish(posthorn, { type: 'a.b', tenant: endpoint.tenant, data: 'one more' });
    await rejects.waitFor(THRESHOLD + 1);
    for (const { id } of dead.slice(THRESHOLD / 2))
      await posthorn.api('POST', `/v1/deliveries/${id}/discard`);
    const requests = await receiver.waitFor(2);
    expect(requests.map((request) => request.json().data.state)).toEqual(['above', 'below']);
  });

  test('report that deliveries wait too long, and that they no longer do', async () => {
    const { receiver } = await operator(['posthorn.queue.age']);
    const { receiver: slow, endpoint } = await subscriber(newTenant(), ['*'], { max_in_flight: 1 });
    slow.hang();
    for (let n = 0; n < 3; n += 1) await publish(posthorn, { type: 'a.b', tenant: endpoint.tenant, data: n });
    const [above] = await receiver.waitFor(1);
    expect(above!.json().data).toMatchObject({
      state: 'above',
      threshold_seconds: 0.4,
      oldest: { endpoint_id: endpoint.id, tenant: endpoint.tenant },
    });
    slow.release();
    const requests = await receiver.waitFor(2);
    expect(requests[1]!.json().data).toMatchObject({ state: 'below' });
  });

  test('report that a circuit opened and closed, and that a delivery died', async () => {
    const { receiver } = await operator();
    const { receiver: fails, endpoint } = await subscriber(newTenant(), ['*'], {
      ...FRAGILE,
      description: 'shop',
      metadata: { owner: 'ann@example.com' },
    });
    fails.answer({ status: 503 });
    const event = await publish(posthorn, { type: 'order.created', tenant: endpoint.tenant, data: 1 });
    const [opened] = await told(receiver, 'posthorn.circuit.opened', endpoint.tenant);
    const about = {
      id: endpoint.id,
      host: new URL(fails.url).host,
      description: 'shop',
      metadata: { owner: 'ann@example.com' },
      enabled: true,
      disabled_reason: null,
      console_url: `https://posthorn.test/console/endpoints/${endpoint.id}`,
    };
    expect(opened.data).toEqual({
      tenant: endpoint.tenant,
      at: expect.any(String),
      endpoint: about,
      opened_at: expect.any(String),
      next_probe_at: expect.any(String),
      consecutive_failures: 2,
      status_code: 503,
      error_class: 'http_5xx',
    });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    const [dead] = await told(receiver, 'posthorn.delivery.dead', endpoint.tenant);
    expect(dead.data).toEqual({
      tenant: endpoint.tenant,
      at: expect.any(String),
      endpoint: about,
      count: 1,
      since: expect.any(String),
      reasons: { exhausted: 1 },
      event_types: { 'order.created': 1 },
      last: {
        delivery_id: delivery!.id,
        event_id: event.id,
        event_type: 'order.created',
        reason: 'exhausted',
        attempts: 2,
        status_code: 503,
        error_class: 'http_5xx',
        console_url: `https://posthorn.test/console/deliveries/${delivery!.id}`,
      },
    });
    fails.answer({ status: 200 });
    await publish(posthorn, { type: 'order.created', tenant: endpoint.tenant, data: 2 });
    const [closed] = await told(receiver, 'posthorn.circuit.closed', endpoint.tenant);
    expect(closed.data).toMatchObject({ endpoint: { id: endpoint.id }, opened_at: opened.data.opened_at });
  });

  test('report that a circuit closed because the breaker was removed', async () => {
    const { receiver } = await operator(['posthorn.circuit.*']);
    const { receiver: fails, endpoint } = await subscriber(newTenant(), ['*'], {
      breaker: { consecutive: 1, cooldown_seconds: 3600 },
    });
    fails.answer({ status: 503 });
    const event = { type: 'order.created', tenant: endpoint.tenant, data: 1 };
    const failed = await publish(posthorn, event);
    const [opened] = await told(receiver, 'posthorn.circuit.opened', endpoint.tenant);
    const held = await publish(posthorn, event);
    const [waiting] = await untilDeliveries(posthorn, held.id, 'pending');
    expect(waiting).toMatchObject({ waiting_reason: 'circuit_open' });

    fails.answer({ status: 200 });
    const { body } = await change(endpoint.id, { breaker: null });
    expect(body.health).toMatchObject({ circuit: 'closed', opened_at: null, next_probe_at: null });
    const [retried] = await untilDeliveries(posthorn, failed.id, 'retrying');
    expect(retried).toMatchObject({ waiting_reason: 'schedule' });
    await untilDeliveries(posthorn, held.id, 'delivered');
    const [closed] = await told(receiver, 'posthorn.circuit.closed', endpoint.tenant);
    expect(closed.data).toMatchObject({ endpoint: { id: endpoint.id }, opened_at: opened.data.opened_at });
  });

  test('report that an endpoint was disabled, automatically or manually, and enabled again', async () => {
    const { receiver } = await operator(['posthorn.endpoint.disabled', 'posthorn.endpoint.enabled']);
    const { receiver: gone, endpoint } = await subscriber(newTenant(), ['*']);
    gone.answer({ status: 410 });
    await publish(posthorn, { type: 'a.b', tenant: endpoint.tenant, data: 1 });
    await told(receiver, 'posthorn.endpoint.disabled', endpoint.tenant);
    await change(endpoint.id, { enabled: true });
    await change(endpoint.id, { description: 'not a switch' });
    await change(endpoint.id, { enabled: false });
    const requests = await receiver.waitFor(3);
    expect(requests.map((request) => [request.json().type, request.json().data.reason])).toEqual([
      ['posthorn.endpoint.disabled', 'gone'],
      ['posthorn.endpoint.enabled', undefined],
      ['posthorn.endpoint.disabled', 'manual'],
    ]);
  });

  test('report many dead letters in few events, with the exact count', async () => {
    const { receiver } = await operator(['posthorn.delivery.dead']);
    const { receiver: rejects, endpoint } = await subscriber(newTenant(), ['*'], { breaker: null });
    rejects.answer({ status: 400 });
    const startedAt = performance.now();
    const events = Array.from({ length: 300 }, () => ({ type: 'a.b', tenant: endpoint.tenant, data: 1 }));
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    const counts = () =>
      receiver.requests
        .filter(isOf('posthorn.delivery.dead', endpoint.tenant))
        .map((r) => r.json().data.count);
    await eventually(
      'all of them were counted',
      () => counts().reduce((sum, count) => sum + count, 0) === 300,
      { saw: counts },
    );
    expect(counts().length).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / WINDOW_MS);
  });
});

describe('OBS-4: recipients of operational events', () => {
  test('the operator gets events of all tenants, a tenant those of its own endpoints, and `*` matches none', async () => {
    const { receiver: ofOperator } = await operator();
    const { receiver: ofOwner, endpoint: owner } = await subscriber(newTenant(), ['posthorn.delivery.dead']);
    const { receiver: ofOther, endpoint: other } = await subscriber(newTenant(), ['posthorn.*']);
    const { receiver: everything, endpoint } = await subscriber(owner.tenant, ['*'], { breaker: null });
    everything.answer({ status: 400 });
    await publish(posthorn, { type: 'a.b', tenant: endpoint.tenant, data: 1 });
    const { receiver: elsewhere } = await subscriber(other.tenant, ['*'], { breaker: null });
    elsewhere.answer({ status: 400 });
    await publish(posthorn, { type: 'a.b', tenant: other.tenant, data: 1 });

    await told(ofOperator, 'posthorn.delivery.dead', owner.tenant);
    await told(ofOperator, 'posthorn.delivery.dead', other.tenant);
    await told(ofOwner, 'posthorn.delivery.dead', owner.tenant);
    await told(ofOther, 'posthorn.delivery.dead', other.tenant);
    expect(ofOwner.requests).toHaveLength(1);
    expect(ofOther.requests).toHaveLength(1);
    expect(everything.requests.map((request) => request.json().type)).toEqual(['a.b']);
    // Posthorn stores only the operational events that the tenant subscribes to.
    const { body } = await posthorn.api('GET', `/v1/events?tenant=${owner.tenant}`);
    expect(body.data.map(({ type }: { type: string }) => type).sort()).toEqual([
      'a.b',
      'posthorn.delivery.dead',
    ]);
  });

  test('an endpoint gets no events about its own circuit, but about its own dead letters', async () => {
    const tenant = newTenant();
    const { receiver: itself } = await subscriber(tenant, ['a.b', 'posthorn.*'], FRAGILE);
    const { receiver: other } = await subscriber(tenant, ['posthorn.circuit.*']);
    itself.answer((request) => ({ status: request.json().type === 'a.b' ? 503 : 200 }));
    await publish(posthorn, { type: 'a.b', tenant, data: 1 });
    await told(other, 'posthorn.circuit.opened', tenant);
    await told(itself, 'posthorn.delivery.dead', tenant);
    await told(other, 'posthorn.circuit.closed', tenant);
    expect(itself.requests.some((request) => request.json().type.startsWith('posthorn.circuit.'))).toBe(
      false,
    );
  });

  test('producers cannot publish operational events', async () => {
    const type = 'posthorn.delivery.dead';
    const tenant = newTenant();
    const { receiver, endpoint } = await subscriber(tenant, ['posthorn.*']);
    await expectStatus(posthorn.api('POST', '/v1/events', { type, tenant, data: 1 }), 422);
    const batch = await posthorn.api('POST', '/v1/events/batch', { events: [{ type, tenant, data: 1 }] });
    expect(batch.body.results[0].error).toMatchObject({ status: 422 });
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${endpoint.id}/test`, { type }), 422);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, {}), 422);
    await expect(
      posthorn.database.query('select posthorn.publish(type => $1, data => $2)', [type, '1']),
    ).rejects.toThrow('reserved');
    expect(receiver.requests).toHaveLength(0);
  });
});

describe('OBS-4: operational events cause no loops, and none is lost', () => {
  test('operator endpoints that fail cause no further events', async () => {
    const { receiver: fails, endpoint: failing } = await subscriber(OPERATOR, ['posthorn.*'], FRAGILE);
    const { receiver: goes, endpoint: going } = await subscriber(OPERATOR, ['posthorn.*'], FRAGILE);
    // A working endpoint, which would get events about the two failing ones if there were any.
    const { receiver: hears } = await operator();
    fails.answer({ status: 503 });
    goes.answer({ status: 410 });
    const tenant = newTenant();
    const { receiver: shop } = await subscriber(tenant, ['*'], FRAGILE);
    shop.answer({ status: 503 });
    await untilAtRest(posthorn.database);
    const since = new Date().toISOString();
    await publish(posthorn, { type: 'a.b', tenant, data: 1 });
    await fails.waitFor(isOf('posthorn.endpoint.disabled', OPERATOR));
    await untilAtRest(posthorn.database);

    const { body } = await posthorn.api('GET', `/v1/events?tenant=${OPERATOR}&since=${since}`);
    const types = body.data
      .map(({ type }: { type: string }) => type)
      .filter((type: string) => !/threshold|age/.test(type));
    // The circuit and the dead letter of the shop, and the one endpoint that Posthorn disabled because of its 410.
    expect(types.sort()).toEqual([
      'posthorn.circuit.opened',
      'posthorn.delivery.dead',
      'posthorn.endpoint.disabled',
    ]);
    const health = async (id: string) => (await posthorn.api('GET', `/v1/endpoints/${id}`)).body;
    expect(await health(failing.id)).toMatchObject({ enabled: true, health: { circuit: 'open' } });
    expect((await health(failing.id)).health.dead).toBeGreaterThanOrEqual(3);
    expect(await health(going.id)).toMatchObject({ enabled: false, disabled_reason: 'gone' });

    // No event reported that its circuit opened, so no event reports that it closes.
    fails.answer({ status: 200 });
    const dead = (await posthorn.api('GET', `/v1/dead-letters?tenant=${OPERATOR}&limit=1`)).body.data;
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead[0].id}/replay`), 202);
    await eventually('it recovers', async () => (await health(failing.id)).health.circuit === 'closed');
    await untilAtRest(posthorn.database);
    const after = await posthorn.api(
      'GET',
      `/v1/events?tenant=${OPERATOR}&since=${since}&type=posthorn.circuit.closed`,
    );
    expect(after.body.data).toEqual([]);
    const about = hears.requests.map((request) => request.json().data.endpoint?.id);
    expect(about).not.toContain(failing.id);
    expect(about).toContain(going.id);
  });

  test('a note that is stored twice under one id causes one event', async () => {
    const { receiver } = await operator(['posthorn.circuit.opened']);
    const { endpoint } = await subscriber(newTenant(), ['*']);
    const id = newId(Date.now());
    const note = () =>
      posthorn.database.query(
        `insert into posthorn.operational_notes (id, kind, endpoint_id, detail)
         values ($1, 'posthorn.circuit.opened', posthorn.private_id('ep', $2), '{}')`,
        [id, endpoint.id],
      );
    await note();
    await told(receiver, 'posthorn.circuit.opened', endpoint.tenant);
    await note();
    await untilAtRest(posthorn.database);
    expect(receiver.requests.filter(isOf('posthorn.circuit.opened', endpoint.tenant))).toHaveLength(1);
  });

  test('after kill -9 before publishing, the next process publishes the event once', async () => {
    const database = await createTestDatabase();
    const [receiver, fails, goes] = await Promise.all([newReceiver(), newReceiver(), newReceiver()]);
    fails.answer({ status: 503 });
    goes.answer({ status: 410 });
    const never = { POSTHORN_OPERATIONAL_EVENTS_MS: '1h' };
    let running: TestPosthorn = await startTestPosthorn({ database, env: { ...SETTINGS, ...never } });
    onTestFinished(async () => {
      await running.stop();
      await database.drop();
    });
    await createEndpoint(running, {
      url: receiver.url,
      operator: true,
      tenant: OPERATOR,
      events: ['posthorn.circuit.*', 'posthorn.delivery.*', 'posthorn.endpoint.*'],
    });
    const noProbe = { ...FRAGILE.breaker, cooldown_seconds: 60, max_cooldown_seconds: 60 };
    await createEndpoint(running, { url: fails.url, tenant: 'fails', ...FRAGILE, breaker: noProbe });
    const gone = await createEndpoint(running, { url: goes.url, tenant: 'goes' });
    for (const tenant of ['fails', 'goes']) {
      const event = await publish(running, { type: 'a.b', tenant, data: 1 });
      await untilDeliveries(running, event.id, 'dead');
    }
    await eventually(
      'it is off',
      async () => !(await running.api('GET', `/v1/endpoints/${gone.id}`)).body.enabled,
    );
    await running.kill('SIGKILL');
    expect(receiver.requests).toHaveLength(0);

    running = await startTestPosthorn({ database, env: SETTINGS, inProcess: true });
    await receiver.waitFor(4);
    await untilAtRest(database);
    expect(
      receiver.requests.map((request) => `${request.json().type} ${request.json().data.tenant}`).sort(),
    ).toEqual([
      'posthorn.circuit.opened fails',
      'posthorn.delivery.dead fails',
      'posthorn.delivery.dead goes',
      'posthorn.endpoint.disabled goes',
    ]);
  });
});
