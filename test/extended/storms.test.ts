/** Runs test/simulation/simulation.test.ts with more seeds: as many of each kind as the machine runs in a minute, up to 200. */
import { expect, it } from 'vitest';
import { runStorm } from '../simulation/storm.ts';

const FIRST_SEED = 1000;
const MOST = 200;
const LEAST = 20;
const BUDGET_MS = 60_000;

it.each([
  { hasRegions: false, title: `keeps its promises in up to ${MOST} storms` },
  {
    hasRegions: true,
    title: `SCL-5: keeps its promises in up to ${MOST} storms with two regions`,
  },
])('$title', { timeout: 900_000 }, async ({ hasRegions }) => {
  const started = performance.now();
  let storms = 0;
  while (storms < MOST && (storms < LEAST || performance.now() - started < BUDGET_MS)) {
    const seed = FIRST_SEED + storms;
    const world = await runStorm(seed, { hasRegions }).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    expect(world.accepted.size, `seed ${seed}`).toBeGreaterThan(0);
    storms += 1;
  }
  process.stdout.write(`${storms} storms\n`);
});
