import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { LaneRegistry } from './lane-registry.ts';
import type { LoadScope } from './refill.ts';
import { Sweeper } from './sweeper.ts';

const NOW = 1_800_000_000_000;

function newSweeper(laneCount: number, recent: () => readonly Uuid[] = () => []) {
  const lanes = new LaneRegistry();
  for (let n = 0; n < laneCount; n += 1) {
    const lane = new Lane({ ...anEndpoint('https://example.com/'), id: newId(NOW) }, HEALTHY, null);
    lane.readProgress.recordFresh(0, true);
    lane.readProgress.recordRetries(0, 0, true);
    lanes.add(lane);
  }
  let sweep = (): void => {};
  let requests: [Lane, LoadScope][] = [];
  const store = { isQuiet: false };
  const sweeper = new Sweeper({
    clock: {
      now: () => NOW,
      monotonic: () => 0,
      after: (_ms, task) => {
        sweep = task;
        return () => {};
      },
    },
    everyMs: 5_000,
    queue: { listRecent: async () => [...recent()] },
    lanes,
    laneKeeper: {
      endCarefulMode: () => {},
      refreshBlocked: async () => {},
      reconcileLane: () => {},
      moveToFifo: () => {},
      loadProbes: () => {},
    },
    refill: {
      request: (lane, scope) => requests.push([lane, scope]),
      get isStoreQuiet() {
        return store.isQuiet;
      },
    },
    scheduler: { consider: () => {} },
    janitor: { expire: () => {} },
    lanesPerSweep: 10,
    onProblem: (_what, error) => {
      throw error;
    },
  });
  sweeper.start();
  return {
    lanes,
    sweeper,
    store,
    /** Sweeps once and returns what was requested. */
    async sweep() {
      requests = [];
      sweep();
      await nextTurn();
      return requests;
    },
  };
}

test('a worker with few lanes reads all of them in every sweep, and fully loads each of them in one of 60', async () => {
  const { sweep } = newSweeper(8);
  const full = new Set<Lane>();
  for (let n = 0; n < 60; n += 1) {
    const requests = await sweep();
    expect(requests).toHaveLength(8);
    for (const [lane, scope] of requests) if (scope === 'all') full.add(lane);
  }
  expect(full.size).toBe(8);
});

test('a worker with many lanes reads a part of them in each sweep, all of them in turn', async () => {
  const { sweep } = newSweeper(100);
  const read = new Set<Lane>();
  for (let n = 0; n < 10; n += 1) {
    const requests = await sweep();
    expect(requests).toHaveLength(10);
    for (const [lane, scope] of requests) if (scope === 'all') read.add(lane);
  }
  expect(read.size).toBe(100);
});

test('a worker with many lanes finds a delivery whose notification was lost in the next sweep', async () => {
  const { lanes, sweep } = newSweeper(100, () => [lost.id, newId(NOW)]);
  const lost = [...lanes.all()].at(-1)!;
  expect(await sweep()).toContainEqual([lost, 'sweep']);
});

test('all lanes are read when notifications may have been lost', async () => {
  const { lanes, sweeper, sweep } = newSweeper(100);
  await sweep();
  const requests = await sweep();
  requests.length = 0;
  sweeper.sweepNow();
  await nextTurn();
  expect(new Set(requests.map(([lane]) => lane))).toEqual(new Set(lanes.all()));
});

test('while no event is accepted, idle lanes are read in one of twelve sweeps, and fully loaded in one of 60', async () => {
  const { store, sweep } = newSweeper(8);
  store.isQuiet = true;
  expect(await sweep()).toHaveLength(8);
  const full = new Set<Lane>();
  for (let n = 1; n <= 60; n += 1) {
    const requests = await sweep();
    expect(requests).toHaveLength(n % 12 === 0 ? 8 : 0);
    for (const [lane, scope] of requests) if (scope === 'all') full.add(lane);
  }
  expect(full.size).toBe(8);
});

test('idle lanes are read again as soon as an event was accepted, or notifications may have been lost', async () => {
  const { store, sweeper, sweep } = newSweeper(8);
  store.isQuiet = true;
  await sweep();
  const resting = await sweep();
  expect(resting).toEqual([]);
  sweeper.sweepNow();
  await nextTurn();
  expect(resting.length).toBeGreaterThanOrEqual(8);
  expect(await sweep()).toEqual([]);
  store.isQuiet = false;
  expect(await sweep()).toHaveLength(8);
  store.isQuiet = true;
  expect(await sweep()).toHaveLength(8);
  expect(await sweep()).toEqual([]);
});

test('many idle lanes are all read once more before sweeps leave them out', async () => {
  const { store, sweep } = newSweeper(100);
  store.isQuiet = true;
  const read = new Set<Lane>();
  for (let n = 0; n < 10; n += 1) for (const [lane] of await sweep()) read.add(lane);
  expect(read.size).toBe(100);
  expect(await sweep()).toEqual([]);
});

test('lanes with deliveries and FIFO lanes are read in every sweep', async () => {
  const { lanes, store, sweep } = newSweeper(8);
  const [waiting, fifo] = [...lanes.all()];
  waiting!.readProgress.leaveRetryInStore(NOW);
  fifo!.reconfigure({ ...fifo!.endpoint, ordering: 'fifo' }, null);
  fifo!.readProgress.recordFresh(0, true);
  store.isQuiet = true;
  await sweep();
  expect(new Set((await sweep()).map(([lane]) => lane))).toEqual(new Set([waiting, fifo]));
});

test('a lane that has more in the store and cannot send is read by every third sweep, and at once if notifications were lost', async () => {
  const { lanes, sweeper, sweep } = newSweeper(1);
  const [lane] = [...lanes.all()];
  lane!.reconfigure({ ...lane!.endpoint, paused: true }, null);
  lane!.readProgress.leaveFreshInStore(0);
  const scopes: LoadScope[] = [];
  for (let n = 0; n < 60; n += 1) for (const [, scope] of await sweep()) scopes.push(scope);
  expect(scopes.filter((scope) => scope === 'all')).toHaveLength(1);
  expect(scopes.length).toBeGreaterThanOrEqual(20);
  expect(scopes.length).toBeLessThanOrEqual(21);
  const requests = await sweep();
  requests.length = 0;
  for (let n = 0; n < 3; n += 1) {
    sweeper.sweepNow();
    await nextTurn();
  }
  expect(requests.length).toBeGreaterThanOrEqual(3);
  lane!.reconfigure({ ...lane!.endpoint, paused: false }, null);
  for (let n = 0; n < 3; n += 1) expect(await sweep()).toHaveLength(1);
});

test('a sweep of many lanes lets other work run in between', async () => {
  const { sweep } = newSweeper(5_000);
  const requests = await sweep();
  let turns = 0;
  for (; requests.length === 0; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThanOrEqual(8);
});
