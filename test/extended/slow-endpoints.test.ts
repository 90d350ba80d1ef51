/** DLV-3: an endpoint that is consistently slow gets fewer requests at a time, and recovers by itself. */
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

const healthOf = async (id: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/endpoints/${id}`), 200)).body.health;

async function publishMany(tenant: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, n) => ({ tenant, type: 'a.b', data: { n } }));
  await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
}

test('DLV-3: lowers the requests at a time of a slow endpoint, shows why, tells the operator, and raises them again', async () => {
  const [receiver, observer] = [await newReceiver(), await newReceiver()];
  const tenant = newTenant();
  const settings = { url: receiver.url, tenant, timeout_ms: 2_000, max_in_flight: 4, events: ['a.b'] };
  const endpoint = await createEndpoint(posthorn, settings);
  const types = ['posthorn.endpoint.limited', 'posthorn.endpoint.unlimited'];
  await createEndpoint(posthorn, { url: observer.url, tenant, events: types });
  expect(endpoint).toMatchObject({
    adaptive: 'on',
    health: { in_flight_limit: 4, effective_timeout_ms: 2_000, adaptive: null },
  });

  let isSlow = true;
  receiver.answer(() => ({ status: 200, delayMs: isSlow ? 1_700 : 0 }));
  await publishMany(tenant, 40);
  const limited = await eventually('the endpoint is limited', async () => {
    const health = await healthOf(endpoint.id);
    return health.adaptive !== null && health;
  });
  expect(limited).toMatchObject({ effective_timeout_ms: 2_000, adaptive: { reason: 'slow' } });
  expect(limited.in_flight_limit).toBeLessThan(4);
  await observer.waitFor(1);
  expect(observer.requests[0]!.json()).toMatchObject({
    type: types[0],
    data: { reason: 'slow', max_in_flight: 4, timeout_ms: 2_000, endpoint: { id: endpoint.id } },
  });

  isSlow = false;
  await publishMany(tenant, 120);
  await eventually('it has its own limits again', async () => {
    const { in_flight_limit, adaptive } = await healthOf(endpoint.id);
    return in_flight_limit === 4 && adaptive === null;
  });
  await observer.waitFor(2);
  expect(observer.requests[1]!.json()).toMatchObject({ type: types[1] });
});

test('DLV-3: leaves an endpoint with adaptive "off" alone, and refuses other values', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const settings = { url: receiver.url, tenant, timeout_ms: 1_000, max_in_flight: 8, adaptive: 'off' };
  const endpoint = await createEndpoint(posthorn, settings);
  expect(endpoint).toMatchObject({ adaptive: 'off' });
  receiver.answer(() => ({ status: 200, delayMs: 550 }));
  await publishMany(tenant, 16);
  await receiver.waitFor(16);
  await publish(posthorn, { tenant, type: 'a.b', data: {} });
  expect((await healthOf(endpoint.id)).adaptive).toBeNull();
  const path = `/v1/endpoints/${endpoint.id}`;
  await expectStatus(posthorn.api('PATCH', path, { adaptive: 'sometimes' }), 422);
  const { body } = await expectStatus(posthorn.api('PATCH', path, { adaptive: null }), 200);
  expect(body.adaptive).toBe('on');
});

test('DLV-3: shortens the deadline of a slow endpoint that times out, and sends one request in ten with the full one', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const endpoint = await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    timeout_ms: 4_000,
    breaker: null,
    retry: { schedule: [0], jitter: 'none' },
  });
  await publishMany(tenant, 110);
  await receiver.waitFor(110);
  receiver.answer(() => ({ status: 200, delayMs: 60_000 }));
  await publishMany(tenant, 60);
  const limited = await eventually('the deadline is shorter', async () => {
    const health = await healthOf(endpoint.id);
    return health.effective_timeout_ms < 4_000 && health;
  });
  // Its successes took milliseconds, but the deadline is never shorter than two seconds.
  expect(limited).toMatchObject({ effective_timeout_ms: 2_000, adaptive: { reason: 'timeouts' } });
  expect(limited.in_flight_limit).toBeLessThan(10);
  const deadlines = await eventually(
    'requests end after both deadlines',
    async () => {
      const rows = await posthorn.database.query<{ seconds: number; count: number }>(
        `select round(duration_ms / 1000.0)::int as seconds, count(*)::int as count from posthorn.attempts
          where error_class = 'timeout' group by 1 order by 1`,
      );
      return (rows.find(({ seconds }) => seconds === 2)?.count ?? 0) >= 10 && rows;
    },
    { timeoutMs: 60_000 },
  );
  expect(deadlines.map(({ seconds }) => seconds)).toEqual([2, 4]);
});
