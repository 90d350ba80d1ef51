import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn();

/** Settings of an endpoint that follows this schedule exactly, without jitter and without a breaker. */
const impatient = (...schedule: number[]) => ({ retry: { schedule, jitter: 'none' }, breaker: null });

describe('RTY-1: classification of answers', () => {
  test.each([200, 201, 202, 204, 299])('%i is delivered', async (status) => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    receiver.answer({ status });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    expect(delivery).toMatchObject({
      attempts: 1,
      last_status_code: status,
      last_error: null,
      reason: null,
      next_attempt_at: null,
      delivered_at: expect.any(String),
      dead_at: null,
    });
  });

  test.each([500, 502, 503, 504, 408, 425, 429])('%i is retried', async (status) => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ...impatient(0, 0.05) });
    receiver.answer(({ index }) => ({ status: index === 0 ? status : 200, body: 'what went wrong' }));
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
    expect(delivery).toMatchObject({ attempts: 2, last_status_code: 200 });
    const attempts = await attemptsOf(posthorn, delivery!.id);
    expect(attempts).toMatchObject([
      { number: 1, status_code: status, outcome: 'retry', response_body: 'what went wrong' },
      { number: 2, status_code: 200, outcome: 'delivered', error: null },
    ]);
    expect(attempts[0]!.error).toMatchObject({
      class: expect.stringMatching(/^http_/),
      hint: expect.any(String),
    });
  });

  test.each([400, 401, 403, 404, 422, 301, 302])('%i is permanent: dead at once', async (status) => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ...impatient(0, 0.05) });
    receiver.answer({ status, headers: { location: '/elsewhere' } });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({
      attempts: 1,
      reason: 'rejected',
      last_status_code: status,
      dead_at: expect.any(String),
      delivered_at: null,
    });
    expect(await attemptsOf(posthorn, delivery!.id)).toMatchObject([
      { outcome: 'dead', status_code: status },
    ]);
    expect(receiver.requests).toHaveLength(1);
  });

  test('410 is dead and disables the endpoint, which gets no more deliveries', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant });
    receiver.answer({ status: 410 });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({ reason: 'gone', attempts: 1, last_error: 'http_410' });
    const shown = await eventually('the endpoint is disabled', async () => {
      const { body } = await posthorn.api('GET', `/v1/endpoints/${endpoint.id}`);
      return body.enabled === false && body;
    });
    expect(shown).toMatchObject({ disabled_reason: 'gone' });
    expect(await publish(posthorn, { tenant, type: 'a.b', data: 2 })).toMatchObject({ deliveries: 0 });
  });

  test('a 410 to a request from before a change of the endpoint does not disable it', async () => {
    const [old, moved] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { url: old.url, tenant });
    const path = `/v1/endpoints/${endpoint.id}`;
    old.hang();
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await old.waitFor(1);
    await posthorn.api('PATCH', path, { url: moved.url });
    old.answer({ status: 410 });
    old.release();
    await untilDeliveries(posthorn, first.id, 'dead');

    moved.hang();
    const second = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    await moved.waitFor(1);
    await posthorn.api('PATCH', path, { enabled: false });
    await posthorn.api('PATCH', path, { enabled: true });
    moved.answer({ status: 410 });
    moved.release();
    await untilDeliveries(posthorn, second.id, 'dead');

    moved.answer({ status: 200 });
    const third = await publish(posthorn, { tenant, type: 'a.b', data: 3 });
    expect(third.deliveries).toBe(1);
    await untilDeliveries(posthorn, third.id, 'delivered');
    expect((await posthorn.api('GET', path)).body).toMatchObject({ enabled: true, disabled_reason: null });
  });

  test('a refused connection is retried until the receiver is back', async () => {
    const gone = await newReceiver();
    await gone.close();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: gone.url,
      tenant,
      ...impatient(0, ...Array<number>(40).fill(0.1)),
    });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const waiting = await eventually('the first attempt failed', async () => {
      const [delivery] = await deliveriesOf(posthorn, event.id);
      return delivery?.status === 'retrying' && delivery;
    });
    expect(waiting).toMatchObject({ last_error: 'connect_refused', last_status_code: null, reason: null });
    const back = await newReceiver({ port: gone.port });
    const [request] = await back.waitFor(1);
    expect(request!.headers).toMatchObject({
      'webhook-id': event.id,
      'posthorn-retry-reason': 'connect_refused',
    });
    await untilDeliveries(posthorn, event.id, 'delivered');
  });

  test('an endpoint can change which statuses are permanent', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      retry: { schedule: [0, 0.05], jitter: 'none', transient: [404], permanent: ['5xx'] },
    });
    receiver.answer(({ index }) => ({ status: [404, 200, 500][index]! }));
    const first = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    expect(await untilDeliveries(posthorn, first.id, 'delivered')).toMatchObject([{ attempts: 2 }]);
    const second = await publish(posthorn, { tenant, type: 'a.b', data: 2 });
    expect(await untilDeliveries(posthorn, second.id, 'dead')).toMatchObject([
      { attempts: 1, reason: 'rejected' },
    ]);
  });
});

describe('RTY-2: the schedule of the endpoint', () => {
  test('attempts follow the schedule, and the delivery dies when it is exhausted', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ...impatient(0.2, 0.4, 0.3) });
    receiver.answer({ status: 500 });
    const acceptedAt = Date.now();
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'dead');
    expect(delivery).toMatchObject({
      attempts: 3,
      max_attempts: 3,
      reason: 'exhausted',
      last_error: 'http_5xx',
      last_status_code: 500,
    });
    const times = receiver.requests.map(({ at }) => at);
    expect(times).toHaveLength(3);
    const waits = times.map((at, index) => at - (index === 0 ? acceptedAt : times[index - 1]!));
    for (const [index, expected] of [200, 400, 300].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(expected - 5);
      expect(waits[index]).toBeLessThan(expected + 3000);
    }
    expect(receiver.requests.map(({ headers }) => headers['posthorn-attempt'])).toEqual(['1', '2', '3']);
    expect((await attemptsOf(posthorn, delivery!.id)).map(({ outcome }) => outcome)).toEqual([
      'retry',
      'retry',
      'dead',
    ]);
  });

  test('a waiting delivery shows its reason and its next attempt', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ...impatient(0, 60) });
    receiver.answer({ status: 503 });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    const [delivery] = await untilDeliveries(posthorn, event.id, 'retrying');
    expect(delivery).toMatchObject({
      attempts: 1,
      max_attempts: 2,
      waiting_reason: 'schedule',
      last_status_code: 503,
    });
    const waitMs = Date.parse(delivery!.next_attempt_at!) - Date.now();
    expect(waitMs).toBeGreaterThan(55_000);
    expect(waitMs).toBeLessThanOrEqual(60_000);
  });

  test('an exponential policy has base, factor and number of attempts', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const retry = { base: 0.05, factor: 2, attempts: 4, jitter: 'none' };
    await createEndpoint(posthorn, { url: receiver.url, tenant, retry, breaker: null });
    receiver.answer({ status: 500 });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    expect(await untilDeliveries(posthorn, event.id, 'dead')).toMatchObject([
      { attempts: 4, max_attempts: 4 },
    ]);
    const times = receiver.requests.map(({ at }) => at);
    for (const [index, expected] of [50, 100, 200].entries()) {
      expect(times[index + 1]! - times[index]!).toBeGreaterThanOrEqual(expected - 5);
    }
  });

  test('RTY-4: Retry-After takes precedence over a shorter schedule', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ...impatient(0, 0.01) });
    receiver.answer(({ index }) => (index === 0 ? { status: 503, headers: { 'retry-after': '1' } } : {}));
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    await untilDeliveries(posthorn, event.id, 'delivered');
    const [first, second] = receiver.requests;
    expect(second!.at - first!.at).toBeGreaterThanOrEqual(990);
  });

  test('a failing endpoint does not delay the deliveries of other endpoints', async () => {
    const [bad, good] = [await newReceiver(), await newReceiver()];
    const tenant = newTenant();
    const failing = await createEndpoint(posthorn, { url: bad.url, tenant, ...impatient(0, 0.05, 0.05) });
    const working = await createEndpoint(posthorn, { url: good.url, tenant });
    bad.answer({ status: 500 });
    const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
    expect(event.deliveries).toBe(2);
    const ended = await eventually('both have ended', async () => {
      const all = await deliveriesOf(posthorn, event.id);
      return all.every(({ status }) => status === 'dead' || status === 'delivered') && all;
    });
    const byEndpoint = new Map(ended.map((delivery) => [delivery.endpoint_id, delivery]));
    expect(byEndpoint.get(failing.id)).toMatchObject({ status: 'dead', attempts: 3 });
    expect(byEndpoint.get(working.id)).toMatchObject({ status: 'delivered', attempts: 1 });
    expect(good.requests).toHaveLength(1);
  });
});
