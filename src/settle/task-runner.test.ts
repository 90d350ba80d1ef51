import { describe, expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { StoreError } from '../ports/store-error.ts';
import { TaskRunner } from './task-runner.ts';

const TASK = { id: '01900000-0000-7000-8000-000000000001', runner: '01900000-0000-7000-8000-000000000002' };

/** A store with one task, whose chunks time out if they are larger than `limit`. */
function createRunner(waiting: number, limit: () => number) {
  const sizes: number[] = [];
  const failures: string[] = [];
  const releases: number[] = [];
  let left = waiting;
  const runner = new TaskRunner({
    tasks: {
      claim: async () => (left > 0 && failures.length === 0 ? TASK : null),
      async runChunk(_, maxDeliveries) {
        sizes.push(maxDeliveries);
        if (maxDeliveries > limit()) throw new StoreError('timeout', 'canceling statement');
        left -= Math.min(maxDeliveries, left);
        return { isRunning: left > 0, endpointIds: [] };
      },
      release: async () => void releases.push(sizes.length),
      fail: async (_, reason) => void failures.push(reason),
    },
    clock: systemClock,
    runner: TASK.runner,
    silentMs: 10_000,
    pollMs: 10_000,
    wake: () => {},
    onProblem: () => {},
  });
  return { runner, sizes, failures, releases };
}

describe('a task whose chunk runs into the statement timeout', () => {
  test('goes on with half of it until it is quick enough, also in its next turn', async () => {
    const { runner, sizes, failures, releases } = createRunner(2_000, () => 100);
    while (await runner.runOnce());
    expect(sizes.slice(0, 4)).toEqual([500, 250, 125, 62]);
    expect(releases[0]).toBe(20);
    // Now and then it tries whether the database has become faster.
    expect(sizes.slice(4).every((size) => size === 62 || size === 124)).toBe(true);
    expect(sizes.slice(4)).toContain(124);
    expect(failures).toEqual([]);
  });

  test('comes back to whole chunks when the database is fast again', async () => {
    let limit = 10;
    const { runner, sizes } = createRunner(100_000, () => limit);
    await runner.runOnce();
    expect(sizes.at(-1)).toBe(7);
    limit = 1_000;
    while (await runner.runOnce());
    expect(sizes.at(-2)).toBe(500);
  });

  test('fails with the reason if a single delivery takes too long', async () => {
    const { runner, sizes, failures } = createRunner(1_000, () => 0);
    while (await runner.runOnce());
    expect(sizes).toEqual([500, 250, 125, 62, 31, 15, 7, 3, 1]);
    expect(failures).toEqual(['A single delivery takes the database longer than a statement may take.']);
  });
});
