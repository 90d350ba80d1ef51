/** What the default breaker does to an endpoint that fails at random: docs/adr/0018-breaker-cooldown.md. */
import { expect, test } from 'vitest';
import { runBusyEndpoint } from '../../lab/busy-endpoint.ts';

const FLAKY = { failing: 0.2, eventsPerSecond: 5, minutes: 20, seed: 1 } as const;

test('HLT-1: an endpoint that fails one request in five gets its events about as well as without a breaker', async () => {
  const without = await runBusyEndpoint({ ...FLAKY, breaker: null });
  const withDefaults = await runBusyEndpoint({ ...FLAKY, breaker: {} });
  const fiveMinutes = await runBusyEndpoint({ ...FLAKY, breaker: { cooldown_seconds: 300 } });
  // The circuit does open: otherwise this compares nothing.
  expect(withDefaults.opened).toBeGreaterThan(0);
  expect(withDefaults.p50).toBeLessThan(1);
  expect(withDefaults.throughput).toBeGreaterThan(0.95 * without.throughput);
  expect(withDefaults.openShare).toBeLessThan(0.75 * fiveMinutes.openShare);
  expect(withDefaults.longestOpen).toBeLessThan(300);
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
