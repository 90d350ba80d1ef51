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
    refill: { request: (lane, scope) => requests.push([lane, scope]) },
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
    /** Sweeps once and returns what was requested. */
    async sweep() {
      requests = [];
      sweep();
      await Promise.resolve();
      await Promise.resolve();
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
  expect(new Set(requests.map(([lane]) => lane))).toEqual(new Set(lanes.all()));
});
