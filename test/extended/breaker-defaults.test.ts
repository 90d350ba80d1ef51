/** What the default breaker does to an endpoint that fails at random: docs/adr/0018 and 0020. */
import { expect, test } from 'vitest';
import { runBusyEndpoint } from '../../lab/busy-endpoint.ts';
import { breakers } from '../../lab/policies.ts';

test('HLT-1: an endpoint that fails one request in five gets its events as well as without a breaker', async () => {
  const flaky = { failing: 0.2, eventsPerSecond: 5, minutes: 30, seed: 1 } as const;
  const without = await runBusyEndpoint({ ...flaky, breaker: null });
  const withDefaults = await runBusyEndpoint({ ...flaky, breaker: {} });
  const fiveMinutes = await runBusyEndpoint({ ...flaky, breaker: breakers['five, 300 s'] });
  expect(withDefaults.p50).toBeLessThan(1);
  expect(withDefaults.throughput).toBeGreaterThan(0.95 * without.throughput);
  // The circuit of the earlier default opens: otherwise this compares nothing.
  expect(fiveMinutes.opened).toBeGreaterThan(0);
  expect(withDefaults.openShare).toBeLessThan(0.5 * fiveMinutes.openShare);
});

test('HLT-1: an endpoint that fails half of its requests still gets its events', async () => {
  const failing = { failing: 0.5, eventsPerSecond: 5, minutes: 10, seed: 1 } as const;
  const without = await runBusyEndpoint({ ...failing, breaker: null });
  const withDefaults = await runBusyEndpoint({ ...failing, breaker: {} });
  const five = await runBusyEndpoint({ ...failing, breaker: breakers['five, 30 s'] });
  expect(withDefaults.throughput).toBeGreaterThan(0.9 * without.throughput);
  expect(five.throughput).toBeLessThan(0.2 * without.throughput);
});

test('HLT-1: the default breaker saves almost all requests of an outage, and ends soon after it', async () => {
  const outage = { failing: 'outage', eventsPerSecond: 2, minutes: 30, seed: 1 } as const;
  const without = await runBusyEndpoint({ ...outage, breaker: null });
  const withDefaults = await runBusyEndpoint({ ...outage, breaker: {} });
  // Half of the trial is the outage. Without a breaker, retries come on top of it.
  expect(withDefaults.requests).toBeLessThan(0.6 * without.requests);
  expect(withDefaults.throughput).toBeGreaterThan(0.99);
  expect(withDefaults.openShare).toBeLessThan(0.85);
});
