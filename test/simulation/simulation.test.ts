/**
 * Hours of faults in seconds: processes crash, stop and restart; the store is slow, refuses calls and loses answers;
 * notifications are lost; receivers fail, hang and flap. The same seed gives the same run.
 *
 *   SIMULATION_STORMS=500 SIMULATION_FIRST_SEED=1000 npx vitest run --project unit test/simulation/simulation.test.ts
 */
import { expect, it } from 'vitest';
import { runStorm } from './storm.ts';

const STORMS = Number(process.env.SIMULATION_STORMS ?? 20);
/** Only for a simulation that hangs: 20 storms take half a minute, and several times that beside other work. */
const TIMEOUT_MS = 300_000 + STORMS * 10_000;
const FIRST_SEED = Number(process.env.SIMULATION_FIRST_SEED ?? 1);

it.each([
  { storms: STORMS, options: {}, title: `keeps its promises in ${STORMS} storms` },
  {
    storms: Math.ceil(STORMS / 4),
    options: { hasRegions: true },
    title: `SCL-5: keeps its promises in ${Math.ceil(STORMS / 4)} storms with two regions`,
  },
  {
    storms: Math.ceil(STORMS / 4),
    options: { isOnKafka: true },
    title: `SCL-2: keeps its promises in ${Math.ceil(STORMS / 4)} storms with Kafka as the accept log`,
  },
])('$title', { timeout: TIMEOUT_MS }, async ({ storms, options, title }) => {
  let requests = 0;
  let deliveries = 0;
  let duplicates = 0;
  let batches = 0;
  let fullBatches = 0;
  let debounced = 0;
  const picky = { partial: 0, rejected: 0, partialFifo: 0, rejectedFifo: 0 };
  for (let seed = FIRST_SEED; seed < FIRST_SEED + storms; seed += 1) {
    try {
      const world = await runStorm(seed, options);
      requests += world.requests;
      deliveries += world.accepted.size;
      duplicates += world.duplicates;
      batches += world.checks.batches;
      fullBatches += world.checks.fullBatches;
      debounced += world.store.debounced.size;
      for (const kind of Object.keys(picky) as (keyof typeof picky)[])
        picky[kind] += world.checks.pickyAnswers[kind];
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  }
  expect(deliveries).toBeGreaterThan(storms * 50);
  // FAN-4: the storms reach batches of several events, and deliveries that others superseded.
  expect(batches).toBeGreaterThan(storms * 10);
  expect(fullBatches).toBeGreaterThan(storms);
  expect(debounced).toBeGreaterThan(storms);
  // And receivers that reject batches or name events that failed, also of FIFO endpoints.
  for (const count of Object.values(picky)) expect(count).toBeGreaterThan(storms / 2);
  process.stdout.write(
    `${title}: ${deliveries} deliveries, ${requests} requests, ${batches} batches (${fullBatches} with several events), ${debounced} debounced, ${duplicates} allowed duplicates, picky answers: ${JSON.stringify(picky)}\n`,
  );
});
