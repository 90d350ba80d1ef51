import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { idPrefixes, parsePublicId } from '../../src/domain/ids.ts';
import { loadLaneStates } from '../../src/postgres/queries/load-lanes.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();
const at = (delayMs: number) => new Promise((resolve) => setTimeout(resolve, delayMs));

/** Publishes events one by one, each after the 202 of the one before, so that their order is defined. */
async function publishMany(tenant: string, count: number, type = 'a.b'): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push((await publish(posthorn, { tenant, type, data: n })).id);
  return ids;
}

describe('DSP-3: limits of an endpoint', () => {
  test('max_in_flight limits concurrent requests, and all deliveries arrive', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 3 });
    let open = 0;
    let most = 0;
    receiver.answer(async () => {
      open += 1;
      most = Math.max(most, open);
      await at(15);
      open -= 1;
      return { status: 200 };
    });
    await Promise.all(
      Array.from({ length: 40 }, (_, n) => publish(posthorn, { tenant, type: 'a.b', data: n })),
    );
    await receiver.waitFor(40);
    expect(most).toBe(3);
  });

  test('rate_limit allows a burst and then a steady rate, retries included', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      rate_limit: { per_second: 20, burst: 2 },
      // Long enough that hardly any delivery dies, whichever requests fail.
      retry: { schedule: [0, 0, 0, 0, 0, 0, 0], jitter: 'none' },
      breaker: null,
    });
    receiver.answer(({ index }) => ({ status: index % 2 === 0 ? 500 : 200 }));
    await publishMany(tenant, 12);
    const requests = await receiver.waitFor(20);
    // Compared with the first request, so that one late request does not make the next one look too early.
    for (const [n, { at: arrived }] of requests.entries()) {
      const earliest = requests[0]!.at + ((n - 2) / 20) * 1000;
      expect(arrived).toBeGreaterThanOrEqual(earliest - 150);
    }
  });

  test('rate_limit: a due delivery that must wait shows rate_limited, alone and in lists', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const rate_limit = { per_second: 0.01, burst: 1 };
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, rate_limit });
    // The burst of a new endpoint goes at once.
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, first.id, 'delivered');
    const next = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    const [delivery] = await deliveriesOf(posthorn, next.id);
    const reasons = async () => {
      const one = await expectStatus(posthorn.api('GET', `/v1/deliveries/${delivery!.id}`), 200);
      const list = await expectStatus(posthorn.api('GET', `/v1/deliveries?endpoint_id=${id}&limit=1`), 200);
      return [one.body.waiting_reason, list.body.data[0].waiting_reason];
    };
    expect(await reasons()).toEqual(['rate_limited', 'rate_limited']);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/pause`), 200);
    expect(await reasons()).toEqual(['paused', 'paused']);
    await expectStatus(posthorn.api('POST', `/v1/endpoints/${id}/resume`), 200);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { rate_limit: null }), 200);
    await untilDeliveries(posthorn, next.id, 'delivered');
  });

  test('rate_limit: disabling and enabling an endpoint gives no second burst', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const rate_limit = { per_second: 0.01, burst: 1 };
    const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, rate_limit });
    const pool = new pg.Pool({ connectionString: posthorn.database.url, max: 1 });
    onTestFinished(() => pool.end());
    const uuid = parsePublicId(idPrefixes.endpoint, id)!;
    const isNew = async () => (await loadLaneStates(pool, [uuid])).get(uuid)!.isNew;
    expect(await isNew()).toBe(true);
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, first.id, 'delivered');
    const skipped = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: false }), 200);
    await untilDeliveries(posthorn, skipped.id, 'skipped');
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true }), 200);
    // The endpoint may have its old lane or a new one.
    expect(await isNew()).toBe(false);
    // The delivery waits for the rate limit: a later event for another endpoint is delivered first.
    const held = await publish(posthorn, { tenant, type: 'a.b', data: 3 });
    const other = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant: other });
    await untilDeliveries(
      posthorn,
      (await publish(posthorn, { tenant: other, type: 'a.b', data: 4 })).id,
      'delivered',
    );
    expect(await deliveriesOf(posthorn, held.id)).toMatchObject([{ waiting_reason: 'rate_limited' }]);
  });

  test('fifo: deliveries keep the order of acceptance, one at a time, and a retry blocks the rest', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      ordering: 'fifo',
      retry: { schedule: [0, 0.1, 0.1], jitter: 'none' },
    });
    let open = 0;
    receiver.answer(async (request) => {
      open += 1;
      expect(open).toBe(1);
      await at(2);
      open -= 1;
      // The third fails twice before it succeeds.
      const failures = receiver.requests.filter((other) => other.json().data === 2).length;
      return { status: request.json().data === 2 && failures < 3 ? 500 : 200 };
    });
    const ids = await publishMany(tenant, 10);
    await untilDeliveries(posthorn, ids.at(-1)!, 'delivered');
    expect(receiver.requests.map((request) => request.json().data)).toEqual([
      0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9,
    ]);
  });

  test('fifo: the order holds across two accepting processes and a change of the worker', async () => {
    const database = await createTestDatabase();
    const receiver = await newReceiver();
    const one = await startTestPosthorn({ database });
    const two = await startTestPosthorn({ database });
    try {
      const { id } = await createEndpoint(one, {
        url: receiver.url,
        tenant: 'fifo',
        ordering: 'fifo',
        timeout_ms: 1000,
      });
      expect(id).toBeTruthy();
      const ids: string[] = [];
      for (let n = 0; n < 30; n += 1) {
        ids.push((await publish(n % 2 === 0 ? one : two, { tenant: 'fifo', type: 'a.b', data: n })).id);
      }
      await one.stop();
      for (let n = 30; n < 40; n += 1)
        ids.push((await publish(two, { tenant: 'fifo', type: 'a.b', data: n })).id);
      await untilDeliveries(two, ids.at(-1)!, 'delivered');
      expect(receiver.requests.map((request) => request.json().data)).toEqual(
        Array.from({ length: 40 }, (_, n) => n),
      );
    } finally {
      await one.stop();
      await two.stop();
      await database.drop();
    }
  });
});

test('DSP-4: endpoints that hang do not slow the others', async () => {
  const hanging = await newReceiver();
  const healthy = await newReceiver();
  hanging.hang();
  const tenant = newTenant();
  for (let n = 0; n < 10; n += 1)
    await createEndpoint(posthorn, { url: `${hanging.url}/${n}`, tenant, events: ['slow.*'], breaker: null });
  await createEndpoint(posthorn, { url: healthy.url, tenant, events: ['quick.*'] });
  await Promise.all(
    Array.from({ length: 40 }, () => publish(posthorn, { tenant, type: 'slow.one', data: 1 })),
  );
  await hanging.waitFor(100);
  const before = performance.now();
  await publishMany(tenant, 20, 'quick.one');
  await healthy.waitFor(20);
  // If the healthy deliveries had to wait for the hanging ones, they would wait for timeouts that are longer than this.
  expect(performance.now() - before).toBeLessThan(8000);
  hanging.release();
});

describe('HLT-1: the circuit breaker', () => {
  const breaker = { consecutive: 3, min_requests: 1000, cooldown_seconds: 0.4, max_cooldown_seconds: 0.8 };
  const retry = { schedule: [0, ...Array.from({ length: 20 }, () => 0.05)], jitter: 'none' };

  test('opens without sending or counting attempts, probes with one request, and closes with a slow start', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      breaker,
      retry,
      max_in_flight: 4,
    });
    let healthy = false;
    let open = 0;
    let mostWhileBroken = 0;
    receiver.answer(async () => {
      open += 1;
      if (!healthy && receiver.requests.length > 8) mostWhileBroken = Math.max(mostWhileBroken, open);
      await at(5);
      open -= 1;
      return { status: healthy ? 200 : 500 };
    });
    const ids = await publishMany(tenant, 12);
    await eventually('the circuit is open', async () => {
      const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
      return body.health.circuit !== 'closed' && body;
    });
    const requestsWhenOpen = receiver.requests.length;
    // Two probes and what was on the wire, instead of twelve deliveries times twenty.
    await receiver.waitFor(requestsWhenOpen + 2);
    expect(receiver.requests.length).toBeLessThanOrEqual(requestsWhenOpen + 5);
    expect(mostWhileBroken).toBeLessThanOrEqual(1);
    healthy = true;
    for (const event of ids) await untilDeliveries(posthorn, event, 'delivered');
    const { body } = await posthorn.api('GET', `/v1/endpoints/${id}`);
    expect(body.health).toMatchObject({
      circuit: 'closed',
      opened_at: null,
      next_probe_at: null,
      consecutive_failures: 0,
    });
  });

  test('survives a restart', async () => {
    const database = await createTestDatabase();
    const receiver = await newReceiver();
    receiver.answer({ status: 500 });
    let server = await startTestPosthorn({ database });
    try {
      const { id } = await createEndpoint(server, {
        url: receiver.url,
        tenant: 'b',
        retry,
        breaker: { ...breaker, cooldown_seconds: 60, max_cooldown_seconds: 60 },
      });
      const event = await publish(server, { tenant: 'b', type: 'a.b', data: 1 });
      const open = await eventually('the circuit is open', async () => {
        const { body } = await server.api('GET', `/v1/endpoints/${id}`);
        return body.health.circuit === 'open' && body.health;
      });
      const sent = receiver.requests.length;
      await server.kill('SIGKILL');
      server = await startTestPosthorn({ database });
      await publish(server, { tenant: 'b', type: 'a.b', data: 2 });
      const { body } = await server.api('GET', `/v1/endpoints/${id}`);
      expect(body.health).toMatchObject({
        circuit: 'open',
        opened_at: open.opened_at,
        next_probe_at: open.next_probe_at,
      });
      expect(receiver.requests.length).toBe(sent);
      expect((await deliveriesOf(server, event.id))[0]).toMatchObject({ status: 'retrying', attempts: 3 });
    } finally {
      await server.stop();
      await database.drop();
    }
  });

  test('is not opened by 4xx and 429, and null disables it', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const counted = await createEndpoint(posthorn, {
      url: `${receiver.url}/4xx`,
      tenant,
      breaker,
      events: ['x.*'],
    });
    receiver.answer({ status: 404 });
    const ids = await publishMany(tenant, 6, 'x.y');
    for (const event of ids) await untilDeliveries(posthorn, event, 'dead');
    const { body } = await posthorn.api('GET', `/v1/endpoints/${counted.id}`);
    expect(body.health).toMatchObject({ circuit: 'closed', consecutive_failures: 0, dead: 6 });
  });
});

test('RTY-4: a 429 with Retry-After delays the whole lane', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    max_in_flight: 1,
    retry: { schedule: [0, 0, 0], jitter: 'none' },
  });
  receiver.answer(({ index }) =>
    index === 0 ? { status: 429, headers: { 'retry-after': '1' } } : { status: 200 },
  );
  await publishMany(tenant, 3);
  const requests = await receiver.waitFor(4);
  expect(requests[1]!.at - requests[0]!.at).toBeGreaterThanOrEqual(950);
});

describe('RTY-8: maximum age', () => {
  test('a scheduled event ages from when it is due, not from when it was accepted', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const retry = { schedule: [0], jitter: 'none', max_age_seconds: 1 };
    await createEndpoint(posthorn, { url: receiver.url, tenant, retry });
    const deliver_at = new Date(Date.now() + 1500).toISOString();
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1, deliver_at });
    await untilDeliveries(posthorn, event.id, 'delivered');
  });

  test('a delivery whose next retry would exceed the maximum age dies at once as expired', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      breaker: null,
      retry: { base: 1.5, factor: 1, attempts: 3, jitter: 'none', max_age_seconds: 3 },
    });
    receiver.answer({ status: 500 });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({ reason: 'expired', attempts: 2 });
  });
});

test('DLV-8: a retry has headers with its number and the reason', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    breaker: null,
    retry: { schedule: [0, 0.02], jitter: 'none' },
  });
  receiver.answer(({ index }) => ({ status: index === 0 ? 503 : 200 }));
  await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const [first, second] = await receiver.waitFor(2);
  expect(first!.headers).toMatchObject({ 'posthorn-attempt': '1' });
  expect(first!.headers).not.toHaveProperty('posthorn-retry-reason');
  expect(second!.headers).toMatchObject({ 'posthorn-attempt': '2', 'posthorn-retry-reason': 'http_5xx' });
});

test('DLV-4: connections are reused', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant, max_in_flight: 1 });
  await publishMany(tenant, 20);
  await receiver.waitFor(20);
  expect(receiver.connections).toBe(1);
});

test('RTY-6: a late result changes nothing and is stored as superseded', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  receiver.hang();
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await receiver.waitFor(1);
  const [delivery] = await deliveriesOf(posthorn, event.id);
  // Simulates an attempt of another worker, as after an unclean takeover.
  await posthorn.database.query(
    "update posthorn.queue set attempts = attempts + 1, due_at = now() + interval '1 hour' where tenant = $1",
    [tenant],
  );
  receiver.release();
  const attempts = await eventually('the attempt is logged', async () => {
    const found = await attemptsOf(posthorn, delivery!.id);
    return found.length > 0 && found;
  });
  expect(attempts).toMatchObject([{ number: 1, outcome: 'superseded', status_code: 200 }]);
  expect((await deliveriesOf(posthorn, event.id))[0]).toMatchObject({ status: 'retrying', attempts: 1 });
});

test('ACC-8: events beyond the capacity are refused with Retry-After, and accepted events are delivered', async () => {
  const database = await createTestDatabase();
  const receiver = await newReceiver();
  const server = await startTestPosthorn({
    database,
    env: { POSTHORN_TENANT_INGEST_PER_SECOND: '1', POSTHORN_TENANT_INGEST_BURST: '10' },
  });
  try {
    await createEndpoint(server, { url: receiver.url, tenant: 'loud' });
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        server.api('POST', '/v1/events', { tenant: 'loud', type: 'a.b', data: n }),
      ),
    );
    const accepted = answers.filter((answer) => answer.status === 202).length;
    const refused = answers.filter((answer) => answer.status === 429);
    expect(accepted + refused.length).toBe(60);
    expect(accepted).toBeGreaterThanOrEqual(10);
    expect(refused.length).toBeGreaterThan(20);
    expect(refused[0]!.headers['retry-after']).toMatch(/^\d+$/);
    expect(refused[0]!.body).toMatchObject({ code: 'rate_limited' });
    await expectStatus(server.api('POST', '/v1/events', { tenant: 'quiet', type: 'a.b', data: 1 }), 202);
    await receiver.waitFor(accepted);
  } finally {
    await server.stop();
    await database.drop();
  }
});

test('DSP-8: a request that a stop cuts off is not a failed attempt, and the next worker repeats it', async () => {
  const database = await createTestDatabase();
  const receiver = await newReceiver();
  receiver.hang();
  let server = await startTestPosthorn({ database, env: { POSTHORN_DRAIN_MS: '1s' } });
  try {
    const retry = { schedule: [0], jitter: 'none' };
    await createEndpoint(server, { url: receiver.url, tenant: 's', timeout_ms: 2000, retry });
    const event = await publish(server, { tenant: 's', type: 'a.b', data: 1 });
    await receiver.waitFor(1);
    await server.kill('SIGTERM');
    server = await startTestPosthorn({ database });
    const [delivery] = await deliveriesOf(server, event.id);
    expect(delivery).toMatchObject({ status: 'pending', attempts: 0 });
    receiver.release();
    const [delivered] = await untilDeliveries(server, event.id, 'delivered', { timeoutMs: 15_000 });
    expect(delivered).toMatchObject({ attempts: 1 });
  } finally {
    await server.stop();
    await database.drop();
  }
});

test('deliveries that wait when their endpoint becomes fifo are sent in order', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    retry: { schedule: [0, 0.5, 0.5], jitter: 'none' },
    breaker: null,
  });
  receiver.answer({ status: 500 });
  const ids = await publishMany(tenant, 5);
  await receiver.waitFor(5);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { ordering: 'fifo' }), 200);
  receiver.answer({ status: 200 });
  for (const event of ids) await untilDeliveries(posthorn, event, 'delivered');
});

test('a delivery that fails after its endpoint became fifo keeps its place in the order', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    retry: { schedule: [0, 60], jitter: 'none' },
    breaker: null,
  });
  receiver.hang();
  const [onTheWire] = await publishMany(tenant, 1);
  await receiver.waitFor(1);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { ordering: 'fifo' }), 200);
  await publishMany(tenant, 1);
  receiver.answer({ status: 500 });
  receiver.release();
  await untilDeliveries(posthorn, onTheWire!, 'retrying');
  const uuid = parsePublicId(idPrefixes.endpoint, id);
  const rows = await posthorn.database.query<{ fifo: boolean }>(
    `select fifo from posthorn.queue where endpoint_id = '${uuid}' order by seq`,
  );
  expect(rows).toEqual([{ fifo: true }, { fifo: true }]);
  expect(receiver.requests).toHaveLength(1);
});

test('every valid event type can be stored, also an SQL keyword', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  for (const type of ['null', 'NULL', 'null.null', 'true', '-', '_']) {
    const event = await publish(posthorn, { tenant, type, data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
  }
});

test('ACC-2: concurrent requests share commits', async () => {
  const tenant = newTenant();
  await Promise.all(
    Array.from({ length: 200 }, (_, n) => publish(posthorn, { tenant, type: 'a.b', data: n })),
  );
  // The transaction that wrote a row is in its xmin.
  const [row] = await posthorn.database.query<{ events: number; commits: number }>(
    'select count(*)::int as events, count(distinct xmin::text)::int as commits from posthorn.events where tenant = $1',
    [tenant],
  );
  expect(row!.events).toBe(200);
  expect(row!.commits).toBeLessThan(100);
});

test('DSP-1: a fresh event is sent at once, without a polling delay', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant });
  let events = 0;
  const medianMs = async (): Promise<number> => {
    const took: number[] = [];
    for (let n = 1; n <= 31; n += 1) {
      const before = performance.now();
      events += 1;
      await publish(posthorn, { tenant, type: 'a.b', data: events });
      await receiver.waitFor(events);
      took.push(performance.now() - before);
    }
    return took.toSorted((a, b) => a - b)[15]!;
  };
  // A polling interval would slow down every round. A busy machine slows down only some.
  await expect.poll(medianMs, { timeout: 20_000 }).toBeLessThan(50);
});
