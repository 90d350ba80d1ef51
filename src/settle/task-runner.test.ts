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
        return { isRunning: left > 0, isWaiting: false, endpointIds: [] };
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
  test('halves its chunks until they are quick enough, and keeps that size in its next turn', async () => {
    const { runner, sizes, failures, releases } = createRunner(2_000, () => 100);
    while (await runner.runOnce());
    expect(sizes.slice(0, 4)).toEqual([500, 250, 125, 62]);
    expect(releases[0]).toBe(20);
    // After some quick chunks it tries a larger one again.
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

describe('a task that waits for a row that another transaction keeps locked', () => {
  const OTHER = { ...TASK, id: '01900000-0000-7000-8000-000000000003' };

  /** Two tasks. Every try of the first takes five seconds and fails until `unlockedAt`. */
  function createBlockedRunner(unlockedAt: number) {
    let now = 0;
    const [tries, failures, queue]: [string[], string[], (typeof TASK)[]] = [[], [], [TASK, OTHER]];
    const runner = new TaskRunner({
      tasks: {
        claim: async () => queue.shift() ?? null,
        async runChunk(task, size) {
          tries.push(`${task.id === TASK.id ? 'blocked' : 'other'} ${size}`);
          if (task.id === OTHER.id) return { isRunning: false, isWaiting: false, endpointIds: [] };
          if (now < unlockedAt) {
            now += 5_000;
            throw new StoreError('conflict', 'canceling statement due to lock timeout');
          }
          return { isRunning: false, isWaiting: false, endpointIds: [] };
        },
        release: async (task) => void queue.push(task as typeof TASK),
        fail: async (_, reason) => void failures.push(reason),
      },
      clock: {
        ...systemClock,
        monotonic: () => now,
        after(_, call) {
          setImmediate(call);
          return () => {};
        },
      },
      runner: TASK.runner,
      silentMs: 10_000,
      pollMs: 10_000,
      wake: () => {},
      onProblem: () => {},
    });
    return { runner, tries, failures };
  }

  test('lets other tasks run immediately, and continues with smaller chunks', async () => {
    const { runner, tries, failures } = createBlockedRunner(20_000);
    while (await runner.runOnce());
    expect(tries).toEqual([
      'blocked 500',
      'other 500',
      'blocked 250',
      'blocked 125',
      'blocked 62',
      'blocked 31',
    ]);
    expect(failures).toEqual([]);
  });

  test('fails with the reason after five minutes', async () => {
    const { runner, tries, failures } = createBlockedRunner(Number.POSITIVE_INFINITY);
    while (await runner.runOnce());
    expect(tries.length).toBeLessThan(70);
    expect(failures).toEqual([
      'Another transaction keeps a row of this task locked. End it, then try again.',
    ]);
  });
});

test('a task that has nothing to do for now lets other tasks run', async () => {
  const OTHER = { ...TASK, id: '01900000-0000-7000-8000-000000000003' };
  const turns: string[] = [];
  const queue = [TASK, OTHER];
  let looks = 0;
  const runner = new TaskRunner({
    tasks: {
      claim: async () => queue.shift() ?? null,
      async runChunk(task) {
        turns.push(task.id === OTHER.id ? 'other' : 'waiting');
        const isWaiting = task.id === TASK.id && ++looks < 3;
        return { isRunning: isWaiting, isWaiting, endpointIds: [] };
      },
      release: async (task) => void queue.push(task as typeof TASK),
      fail: async () => {},
    },
    clock: {
      ...systemClock,
      after(_, call) {
        setImmediate(call);
        return () => {};
      },
    },
    runner: TASK.runner,
    silentMs: 10_000,
    pollMs: 10_000,
    wake: () => {},
    onProblem: () => {},
  });
  while (await runner.runOnce());
  expect(turns).toEqual(['waiting', 'other', 'waiting', 'waiting']);
});
