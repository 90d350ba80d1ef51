import { expect, test } from 'vitest';
import type { Clock } from './domain/clock.ts';
import { ReadinessWatch } from './readiness-watch.ts';

function setUp() {
  const state = { missing: null as string | null, isStopping: false, stalledForMs: 0, workerId: 'w1' };
  const logged: string[] = [];
  const reported: [string, boolean][] = [];
  let next: (() => void) | null = null;
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (_delayMs, task) => {
      next = task;
      return () => {};
    },
  };
  const watch = new ReadinessWatch({
    clock,
    log: {
      warn: ({ detail }: { detail: string }, message: string) => void logged.push(`${message}: ${detail}`),
      info: (message: string) => void logged.push(message),
    } as never,
    findMissing: async () => state.missing,
    isStopping: () => state.isStopping,
    worker: {
      id: () => state.workerId,
      stalledForMs: () => state.stalledForMs,
      report: async (...report) => void reported.push(report),
    },
    stalledAfterMs: 1_000,
    onProblem: () => {},
  });
  watch.start();
  /** Runs the next check. */
  const check = async (changes: Partial<typeof state> = {}): Promise<void> => {
    Object.assign(state, changes);
    next!();
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return { check, logged, reported };
}

test('a process logs what is missing once two checks have found it, and when it is ready again', async () => {
  const { check, logged } = setUp();
  await check();
  await check({ missing: 'a take-over' });
  await check({ missing: null });
  expect(logged).toEqual([]);
  await check({ missing: 'the database' });
  await check();
  await check();
  expect(logged).toEqual(['not ready: the database']);
  await check({ missing: null });
  await check({ missing: 'it stops', isStopping: true });
  await check();
  expect(logged).toEqual(['not ready: the database', 'ready again']);
});

test('a worker reports once that it is stalled, again under a new id, and when it is no longer', async () => {
  const { check, reported } = setUp();
  await check({ stalledForMs: 900 });
  await check({ stalledForMs: 2_000 });
  await check({ stalledForMs: 4_000 });
  expect(reported).toEqual([['w1', true]]);
  await check({ workerId: 'w2' });
  await check({ stalledForMs: 0 });
  await check();
  expect(reported).toEqual([
    ['w1', true],
    ['w2', true],
    ['w2', false],
  ]);
});
