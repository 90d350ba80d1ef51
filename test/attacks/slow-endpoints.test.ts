/** Endpoints that answer slowly do not take the sockets, the memory or the reads that fast endpoints need. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createEndpoint, newReceiver, newTenant, publish, usePosthorn } from '../support/posthorn.ts';

const SOCKETS = 40;
const SLOW_ENDPOINTS = 30;
const EVENTS = 40;
const ANSWER_MS = 1_300;

const posthorn = usePosthorn({
  env: {
    POSTHORN_MAX_SOCKETS: String(SOCKETS),
    // Fewer than the slow endpoints would use.
    POSTHORN_LANE_ITEMS: '20',
    POSTHORN_LANE_BUDGET_ITEMS: '400',
  },
});

test('a fast endpoint is served at once while slow endpoints of another tenant have more work than sockets', async () => {
  const [slow, fast] = [await newReceiver(), await newReceiver()];
  const [attacker, tenant] = [newTenant(), newTenant()];
  slow.answer(async () => {
    await sleep(ANSWER_MS);
    return { status: 200 };
  });
  await createEndpoint(posthorn, { url: fast.url, tenant });
  await Promise.all(
    Array.from({ length: SLOW_ENDPOINTS }, () =>
      createEndpoint(posthorn, { url: slow.url, tenant: attacker }),
    ),
  );
  const events = Array.from({ length: EVENTS }, (_, n) => ({ tenant: attacker, type: 'a.b', data: n }));
  await posthorn.api('POST', '/v1/events/batch', { events });

  let served = 0;
  const serve = async (): Promise<number> => {
    const startedAt = performance.now();
    await publish(posthorn, { tenant, type: 'a.b', data: 0 });
    served += 1;
    await fast.waitFor(served);
    return performance.now() - startedAt;
  };
  // First while Posthorn does not know that they are slow, then after all of them have answered slowly.
  await slow.waitFor(SLOW_ENDPOINTS);
  const latencies = [await serve(), await serve(), await serve()];
  await slow.waitFor(3 * SLOW_ENDPOINTS);
  latencies.push(await serve(), await serve(), await serve());
  // A fast endpoint that waits for a socket waits for a slow answer each time. A busy machine delays single requests.
  expect(latencies.filter((latency) => latency < ANSWER_MS / 2).length, String(latencies)).toBeGreaterThan(3);
});
