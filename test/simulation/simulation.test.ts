/**
 * Hours of faults in seconds: workers that crash, stop and come back, a database that is slow or cuts answers off,
 * wake-ups that are lost, receivers that fail, hang and flap. The same seed gives the same run.
 *
 *   SIMULATION_SEEDS=500 SIMULATION_FIRST_SEED=1000 npx vitest run --project unit test/simulation
 */
import { expect, it } from 'vitest';
import { storm } from './storm.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 20);
const FIRST_SEED = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

it(`keeps its promises in ${SEEDS} storms`, { timeout: 60_000 + SEEDS * 2_000 }, async () => {
  let requests = 0;
  let deliveries = 0;
  let duplicates = 0;
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    try {
      const world = await storm(seed);
      requests += world.requests;
      deliveries += world.accepted.size;
      duplicates += world.duplicates;
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }
  expect(deliveries).toBeGreaterThan(SEEDS * 50);
  process.stdout.write(
    `${SEEDS} storms: ${deliveries} deliveries, ${requests} requests, ${duplicates} second copies after unclean takeovers\n`,
  );
});
