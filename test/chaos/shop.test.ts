import { expect, inject, test } from 'vitest';
import { runShopChaos, type ShopChaosReport } from './four-ways/run.ts';
import { wayNames } from './four-ways/ways.ts';

/**
 * A short run; the longer one is in test/extended/chaos. CHAOS_SEED=n repeats the choice of faults, but not their exact
 * timing.
 */
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6));

test('OUT-1 OUT-2 OUT-3 OUT-4: whichever process dies, each order that a shop commits becomes exactly one event and is delivered', {
  timeout: 180_000,
}, async () => {
  const report: ShopChaosReport = await runShopChaos({
    seed,
    program: inject('program'),
    minMs: 0,
    restMs: 700,
    faultsPerRound: 3,
    ordersPerSecond: 100,
    drainMs: 30_000,
  });
  const { story, ...numbers } = report;
  process.stdout.write(`shop chaos: ${JSON.stringify(numbers)}\n`);
  expect(story, story).toBe('');
  for (const way of wayNames) expect(report.orders[way], way).toBeGreaterThan(20);
});
