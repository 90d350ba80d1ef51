/** Runs test/simulation/simulation.test.ts with more seeds: as many as the machine runs in two minutes, up to 150. */
import { expect, it } from 'vitest';
import { runStorm } from '../simulation/storm.ts';

const FIRST_SEED = 1000;
const MOST = 150;
const LEAST = 20;
const BUDGET_MS = 120_000;

it(`keeps its promises in up to ${MOST} storms`, { timeout: 900_000 }, async () => {
  const started = performance.now();
  let storms = 0;
  while (storms < MOST && (storms < LEAST || performance.now() - started < BUDGET_MS)) {
    const seed = FIRST_SEED + storms;
    const world = await runStorm(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    expect(world.accepted.size, `seed ${seed}`).toBeGreaterThan(0);
    storms += 1;
  }
  process.stdout.write(`${storms} storms\n`);
});
