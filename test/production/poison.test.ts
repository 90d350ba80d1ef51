/** Deliveries that crash their worker, with real processes. The simulation covers the same rules in the plain run. */
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  publish,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

test('a delivery that was on the wire in three counted crashes of its worker dies as worker_crash, and others are sent', async () => {
  const database = await createTestDatabase();
  const receiver = await newReceiver();
  const env = { POSTHORN_CAREFUL_AFTER_CRASHES: '1', POSTHORN_DEAD_AFTER_MS: '1s' };
  receiver.hang();
  let server = await startTestPosthorn({ database, env });
  try {
    await createEndpoint(server, {
      url: receiver.url,
      tenant: 'p',
      timeout_ms: 1000,
      retry: { schedule: [0, 60], jitter: 'none' },
      breaker: null,
    });
    const poison = await publish(server, { tenant: 'p', type: 'a.b', data: 'poison' });
    // The first crash makes the shard careful, and the next three are counted.
    for (let death = 1; death <= 4; death += 1) {
      await receiver.waitFor(death);
      await server.kill('SIGKILL');
      server = await startTestPosthorn({ database, env });
    }
    const [delivery] = await untilDeliveries(server, poison.id, 'dead');
    expect(delivery).toMatchObject({ reason: 'worker_crash' });
    receiver.release();
    const innocent = await publish(server, { tenant: 'p', type: 'a.b', data: 'innocent' });
    await untilDeliveries(server, innocent.id, 'delivered');
    expect(receiver.requests.filter((request) => request.json().data === 'poison')).toHaveLength(4);
  } finally {
    await server.stop();
    await database.drop();
  }
});

test('a delivery that is on the wire beside a poison delivery is delivered', async () => {
  const database = await createTestDatabase();
  const [deadly, slow] = [await newReceiver(), await newReceiver()];
  const env = { POSTHORN_CAREFUL_AFTER_CRASHES: '1', POSTHORN_DEAD_AFTER_MS: '1s' };
  const config = { timeout_ms: 1000, retry: { schedule: [0, 60], jitter: 'none' }, breaker: null };
  deadly.hang();
  slow.hang();
  let server = await startTestPosthorn({ database, env });
  try {
    await createEndpoint(server, { url: deadly.url, tenant: 'p', events: ['poison'], ...config });
    await createEndpoint(server, { url: slow.url, tenant: 'p', events: ['innocent'], ...config });
    const poison = await publish(server, { tenant: 'p', type: 'poison', data: 1 });
    const innocent = await publish(server, { tenant: 'p', type: 'innocent', data: 1 });
    await slow.waitFor(1);
    for (let death = 1; death <= 4; death += 1) {
      await deadly.waitFor(death);
      await server.kill('SIGKILL');
      server = await startTestPosthorn({ database, env });
    }
    expect(await untilDeliveries(server, poison.id, 'dead')).toMatchObject([{ reason: 'worker_crash' }]);
    slow.release();
    const [beside] = await deliveriesOf(server, innocent.id);
    if (beside!.status === 'retrying')
      await expectStatus(server.api('POST', `/v1/deliveries/${beside!.id}/replay`), 202);
    await untilDeliveries(server, innocent.id, 'delivered');
  } finally {
    await server.stop();
    await database.drop();
  }
});
