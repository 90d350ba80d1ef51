/** Durations that are not whole milliseconds: the 422 names the field. A stored one once failed a whole batch of results. */
import { expect, it } from 'vitest';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });

it.each([
  ['breaker.cooldown_seconds', { breaker: { cooldown_seconds: 0.0005 } }],
  ['breaker.max_cooldown_seconds', { breaker: { max_cooldown_seconds: 60.0001 } }],
  ['breaker.window_seconds', { breaker: { window_seconds: 1.00001 } }],
  ['retry.base', { retry: { base: 1e-9 } }],
  ['retry.max', { retry: { base: 1, max: 1.23456 } }],
  ['retry.max_age_seconds', { retry: { schedule: [0], max_age_seconds: 60.00005 } }],
  ['retry.schedule[1]', { retry: { schedule: [0, 0.0001] } }],
])('%s with a fraction of a millisecond is a 422', async (path, settings) => {
  const endpoint = { url: 'https://example.com/', tenant: newTenant() };
  const { id } = await createEndpoint(posthorn, endpoint);
  for (const [method, url, body] of [
    ['POST', '/v1/endpoints', { ...endpoint, ...settings }],
    ['PATCH', `/v1/endpoints/${id}`, settings],
  ] as const) {
    const refused = await expectStatus(posthorn.api(method, url, body), 422);
    expect(refused.body.errors).toEqual([{ path, message: expect.stringContaining('whole milliseconds') }]);
  }
});

it('overlap_seconds with a fraction of a millisecond is a 422', async () => {
  const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant: newTenant() });
  const rotate = `/v1/endpoints/${id}/rotate-secret`;
  const refused = await expectStatus(posthorn.api('POST', rotate, { overlap_seconds: 0.0001 }), 422);
  expect(refused.body.errors[0].path).toBe('overlap_seconds');
});

it('a cooldown that floating point cannot multiply exactly is stored', async () => {
  const receiver = await newReceiver();
  receiver.answer({ status: 500 });
  const tenant = newTenant();
  await createEndpoint(posthorn, {
    url: receiver.url,
    tenant,
    // 1.005 × 1000 is 1004.9999999999999.
    breaker: { consecutive: 1, cooldown_seconds: 1.005 },
    retry: { schedule: [0] },
  });
  const event = await publish(posthorn, { type: 'order.created', data: 1, tenant });
  await untilDeliveries(posthorn, event.id, 'dead');
});
