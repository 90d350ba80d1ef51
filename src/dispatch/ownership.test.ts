import { describe, expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
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
  const join = async (workerName: string, isSteady = true) => {
    const timers = new Set<() => void>();
    const clock: Clock = {
      now,
      isSteady,
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
      region: null,
      fallbackAfterMs: null,
      onProblem: () => {},
    });
    let lost = 0;
    let rewinds = 0;
    ownership.addListener({
      onDeadWorkersRemoved: (workers) => removed.push(...workers),
      onShardsLost: (shards) => {
        lost += shards.length;
      },
      onRewound: () => {
        rewinds += 1;
      },
    });
    await ownership.start();
    const beat = async (): Promise<void> => {
      for (const task of [...timers]) {
        timers.delete(task);
        task();
      }
      await new Promise(setImmediate);
    };
    return { ownership, beat, lost: () => lost, rewinds: () => rewinds };
  };
  return {
    first: await join('first'),
    second: await join('second'),
    join,
    store,
    removed,
    pass: (ms: number): void => {
      elapsedMs += ms;
    },
    stepStoreClock: (ms: number): void => {
      storeAheadMs += ms;
    },
  };
}

test('in a balanced deployment a heartbeat is one statement', async () => {
  const store = new MemoryStore({ clock: { now: () => 1_800_000_000_000, after: () => () => {} } });
  const memory = createMemoryOwnershipStore({ store, announceFreeShards: () => {} });
  const statements: string[] = [];
  const ownership = new Ownership({
    store: {
      ...memory,
      connect: async (...worker) =>
        new Proxy(await memory.connect(...worker), {
          get(session, name, receiver) {
            if (typeof name === 'string' && name !== 'then') statements.push(name);
            return Reflect.get(session, name, receiver);
          },
        }),
    },
    workerName: 'only',
    clock: { now: () => 1_800_000_000_000, monotonic: () => 0, after: () => () => {} },
    heartbeatMs: HEARTBEAT_MS,
    leaseMs: 1_000,
    deadAfterMs: 8_000,
    crashWindowMs: 600_000,
    region: null,
    fallbackAfterMs: null,
    onProblem: () => {},
  });
  const heartbeat = async (): Promise<string[]> => {
    statements.length = 0;
    ownership.renewNow();
    await new Promise(setImmediate);
    return [...statements];
  };
  await ownership.start();
  expect(statements).toContain('takeShards');
  expect(await heartbeat()).toEqual(['renew']);
  // A worker that joins and has no shards yet makes this one give some up.
  await memory.connect({ id: newId(1_800_000_000_000), name: 'new', wireVersion: 3, region: null }, () => {});
  expect(await heartbeat()).toContain('countSurplusShards');
  expect(ownership.keptShards).toHaveLength(128);
});

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

  test.each([
    [40, 10],
    [-40, 10],
    [-40, 1],
    [-40, 0],
  ])('by %d days for %d heartbeats, living workers keep their shards', async (days, beats) => {
    const { first, second, removed, pass, stepStoreClock } = await startTwoWorkers();
    const beatBoth = async (count: number): Promise<void> => {
      for (let beat = 0; beat < count; beat += 1) {
        pass(HEARTBEAT_MS);
        await first.beat();
        await second.beat();
      }
    };
    // Both have been running for longer than `deadAfterMs`.
    await beatBoth(30);
    const stateOf = () =>
      [first, second].map((worker) => [worker.lost(), worker.ownership.keptShards.length]);
    const before = stateOf();
    stepStoreClock(days * DAY_MS);
    // With 0, only one of them renews before the clock is right again.
    await second.beat();
    await beatBoth(beats);
    stepStoreClock(-days * DAY_MS);
    await beatBoth(40);
    expect(removed).toEqual([]);
    expect([first, second].map((worker) => worker.rewinds())).toEqual([0, 0]);
    expect(stateOf()).toEqual(before);
  });

  test.each([true, false])(
    'forward by 40 days, a worker that joins removes no living one',
    async (isSteady) => {
      const { first, second, removed, join, pass, stepStoreClock } = await startTwoWorkers();
      pass(HEARTBEAT_MS);
      await first.beat();
      await second.beat();
      stepStoreClock(40 * DAY_MS);
      await join('third', isSteady);
      expect(removed).toEqual([]);
    },
  );

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

test.each([true, false])(
  'a worker whose store was set back gives up its shards (session lost: %s)',
  async (isLost) => {
    const { first, store, pass } = await startTwoWorkers();
    pass(HEARTBEAT_MS);
    await first.beat();
    pass(HEARTBEAT_MS);
    await first.beat();
    if (isLost) store.breakSession(first.ownership.workerId);
    store.workers.get(first.ownership.workerId)!.renewals -= 1;
    pass(HEARTBEAT_MS);
    await first.beat();
    expect(first.rewinds()).toBe(1);
  },
);

test.each([
  [0, 0],
  [1, 1],
])(
  'a worker that others removed while it was disconnected joins again, and reports a store that was set back only if %d events are missing',
  async (missing, rewinds) => {
    const { first, second, store, pass } = await startTwoWorkers();
    let lastSeq = 10;
    Object.defineProperty(store, 'lastSeq', { get: () => lastSeq });
    pass(HEARTBEAT_MS);
    await first.beat();
    await second.beat();
    store.breakSession(first.ownership.workerId);
    store.workers.delete(first.ownership.workerId);
    for (const shard of store.shards.values())
      if (shard.owner === first.ownership.workerId) shard.owner = null;
    lastSeq -= missing;
    for (let beats = 0; beats < 4; beats += 1) {
      pass(HEARTBEAT_MS);
      await first.beat();
      await second.beat();
    }
    expect(first.rewinds()).toBe(rewinds);
    expect(store.workers.has(first.ownership.workerId)).toBe(true);
  },
);
