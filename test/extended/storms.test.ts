/** Runs test/simulation/simulation.test.ts with more seeds. */
import { expect, it } from 'vitest';
import { runStorm } from '../simulation/storm.ts';

const FIRST_SEED = 1000;
const SEEDS = 200;

it(`keeps its promises in ${SEEDS} storms`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed += 1) {
    const world = await runStorm(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
    expect(world.accepted.size, `seed ${seed}`).toBeGreaterThan(0);
  }
});
