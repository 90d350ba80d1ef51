import { describe, expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { createMemoryOwnershipStore } from '../memory/memory-ownership-store.ts';
import { MemoryStore } from '../memory/memory-store.ts';
import { Ownership } from './ownership.ts';

const DAY_MS = 86_400_000;
const HEARTBEAT_MS = 300;

/** Two workers of one store, whose clock can be set. Time passes only in `pass`. */
async function startTwoWorkers() {
  let elapsedMs = 0;
  let storeAheadMs = 0;
  const now = (): number => 1_800_000_000_000 + elapsedMs;
  const storeClock = { now: () => now() + storeAheadMs, after: () => () => {} };
  const store = new MemoryStore({ clock: storeClock });
  const removed: string[] = [];
  const join = async (workerName: string) => {
    const timers = new Set<() => void>();
    const clock: Clock = {
      now,
      monotonic: () => elapsedMs,
      after: (_delayMs, task) => {
        timers.add(task);
        return () => void timers.delete(task);
      },
    };
    const ownership = new Ownership({
      store: createMemoryOwnershipStore({ store, announceFreeShards: () => {} }),
      workerName,
      clock,
      heartbeatMs: HEARTBEAT_MS,
      leaseMs: 1_000,
      deadAfterMs: 8_000,
      crashWindowMs: 600_000,
      onProblem: () => {},
    });
    ownership.addListener({ onDeadWorkersRemoved: (workers) => removed.push(...workers) });
    await ownership.start();
    const beat = async (): Promise<void> => {
      for (const task of [...timers]) {
        timers.delete(task);
        task();
      }
      await new Promise(setImmediate);
    };
    return { ownership, beat };
  };
  return {
    first: await join('first'),
    second: await join('second'),
    removed,
    pass: (ms: number): void => {
      elapsedMs += ms;
    },
    stepStoreClock: (ms: number): void => {
      storeAheadMs += ms;
    },
  };
}

describe("after a step of the database's clock", () => {
  test('forward by 40 days, a live worker keeps its shards although its last renewal looks old', async () => {
    const { first, second, removed, pass, stepStoreClock } = await startTwoWorkers();
    pass(HEARTBEAT_MS);
    stepStoreClock(40 * DAY_MS);
    await second.beat();
    expect(removed).toEqual([]);
    pass(HEARTBEAT_MS);
    await first.beat();
    for (let beats = 0; beats < 20; beats += 1) {
      pass(HEARTBEAT_MS);
      await first.beat();
      await second.beat();
    }
    expect(removed).toEqual([]);
    expect(first.ownership.shardCount).toBeGreaterThan(0);
  });

  test.each([40, -40])(
    'by %d days, the shards of a dead worker are taken over within seconds',
    async (days) => {
      const { second, removed, pass, stepStoreClock } = await startTwoWorkers();
      pass(HEARTBEAT_MS);
      await second.beat();
      stepStoreClock(days * DAY_MS);
      for (let beats = 0; beats < 35; beats += 1) {
        pass(HEARTBEAT_MS);
        await second.beat();
      }
      expect(removed).toEqual(['first']);
      expect(second.ownership.shardCount).toBe(256);
    },
  );
});
