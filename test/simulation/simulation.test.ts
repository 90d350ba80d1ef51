/**
 * Hours of faults in seconds: processes crash, stop and restart; the store is slow, refuses calls and loses answers;
 * notifications are lost; receivers fail, hang and flap. The same seed gives the same run.
 *
 *   SIMULATION_STORMS=500 SIMULATION_FIRST_SEED=1000 npx vitest run --project unit test/simulation/simulation.test.ts
 */
import { expect, it } from 'vitest';
import { runStorm } from './storm.ts';

const STORMS = Number(process.env.SIMULATION_STORMS ?? 20);
const FIRST_SEED = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

it(`keeps its promises in ${STORMS} storms`, { timeout: 60_000 + STORMS * 2_000 }, async () => {
  let requests = 0;
  let deliveries = 0;
  let duplicates = 0;
  for (let seed = FIRST_SEED; seed < FIRST_SEED + STORMS; seed += 1) {
    try {
      const world = await runStorm(seed);
      requests += world.requests;
      deliveries += world.accepted.size;
      duplicates += world.duplicates;
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }
  expect(deliveries).toBeGreaterThan(STORMS * 50);
  process.stdout.write(
    `${STORMS} storms: ${deliveries} deliveries, ${requests} requests, ${duplicates} allowed duplicates\n`,
  );
});
