import { describe, expect, it } from 'vitest';
import type { LaneReader } from '../ports/delivery-queue.ts';
import type { Lane, LaneBacklog } from './lane.ts';
import { QueueDepthCounter } from './queue-depth.ts';

/** A store that counts how many rows it had to visit. */
class CountingStore {
  readonly waiting = new Map<string, { fresh: number; retries: number }>();
  visited = 0;

  readonly queue: Pick<LaneReader, 'countWaiting'> = {
    countWaiting: async (ids, max) =>
      ids.map((endpointId) => {
        const { fresh, retries } = this.waiting.get(endpointId) ?? { fresh: 0, retries: 0 };
        const seen = { fresh: Math.min(fresh, max), retries: Math.min(retries, max) };
        this.visited += seen.fresh + seen.retries;
        const none = Number.POSITIVE_INFINITY;
        return { endpointId, ...seen, oldestFresh: none, firstDue: none };
      }),
  };
}

const IN_MEMORY: LaneBacklog = {
  isComplete: true,
  fresh: 0,
  retries: 0,
  oldestFresh: Number.POSITIVE_INFINITY,
  firstDue: Number.POSITIVE_INFINITY,
  isBlockedByHead: false,
};

function lane(id: string, change: Partial<Lane> & { backlog?: LaneBacklog } = {}): Lane {
  const backlog = change.backlog ?? { ...IN_MEMORY, isComplete: false };
  return {
    id,
    endpoint: { region: null },
    isFlowing: true,
    holdUntil: 0,
    inFlight: 0,
    unsettled: 0,
    queuedFresh: backlog.fresh,
    queuedRetries: backlog.retries,
    backlog,
    ...change,
  } as unknown as Lane;
}

describe('QueueDepthCounter', () => {
  it('does not read the store for lanes that have everything in memory', async () => {
    const database = new CountingStore();
    const backlog = { ...IN_MEMORY, fresh: 3, retries: 2, oldestFresh: 500, firstDue: 900 };
    const depth = await new QueueDepthCounter(database.queue).count(
      [lane('a', { backlog }), lane('b', { backlog })],
      0,
    );
    expect(depth.flowing).toEqual({ fresh: 6, retries: 4, oldestFresh: 500, firstDue: 900 });
    expect(database.visited).toBe(0);
  });

  it('counts the other lanes in the store, without the deliveries in memory or on the wire', async () => {
    const database = new CountingStore();
    database.waiting.set('a', { fresh: 250, retries: 10 });
    const backlog = { ...IN_MEMORY, isComplete: false, fresh: 200 };
    const { flowing } = await new QueueDepthCounter(database.queue).count(
      [lane('a', { backlog, inFlight: 5 })],
      0,
    );
    expect(flowing).toMatchObject({ fresh: 245, retries: 10 });
  });

  it('counts held lanes separately from flowing ones', async () => {
    const database = new CountingStore();
    const backlog = { ...IN_MEMORY, fresh: 1 };
    const { flowing, held } = await new QueueDepthCounter(database.queue).count(
      [
        lane('flows', { backlog }),
        lane('paused', { backlog, isFlowing: false }),
        lane('held by Retry-After', { backlog, holdUntil: 2_000 }),
        lane('blocked by its FIFO head', { backlog: { ...backlog, isBlockedByHead: true } }),
      ],
      1_000,
    );
    expect([flowing.fresh, held.fresh]).toEqual([1, 3]);
  });

  it('SCL-6: counts flowing lanes by the region that their endpoints name', async () => {
    const database = new CountingStore();
    const backlog = { ...IN_MEMORY, fresh: 1 };
    const endpoint = { region: 'eu' } as Lane['endpoint'];
    const { flowing, regions } = await new QueueDepthCounter(database.queue).count(
      [
        lane('default', { backlog }),
        lane('eu', { backlog, endpoint }),
        lane('another', { backlog, endpoint }),
        lane('paused', { backlog, endpoint, isFlowing: false }),
      ],
      1_000,
    );
    expect(flowing.fresh).toBe(3);
    expect([...regions].map(([region, { fresh }]) => [region, fresh])).toEqual([
      [null, 1],
      ['eu', 2],
    ]);
  });

  it('visits a bounded number of rows per round, and after some rounds has counted every lane', async () => {
    const database = new CountingStore();
    const lanes = Array.from({ length: 300 }, (_, n) => lane(`ep${n}`));
    for (const { id } of lanes) database.waiting.set(id, { fresh: 20_000, retries: 0 });
    const counter = new QueueDepthCounter(database.queue);
    const first = await counter.count(lanes, 0);
    expect(database.visited).toBeLessThanOrEqual(600_000);
    let depth = first.flowing.fresh;
    let rounds = 1;
    for (; depth < 300 * 20_000 && rounds < 100; rounds += 1) {
      database.visited = 0;
      depth = (await counter.count(lanes, 0)).flowing.fresh;
      expect(database.visited).toBeLessThanOrEqual(600_000);
    }
    expect(depth).toBe(300 * 20_000);
    expect(rounds).toBeLessThan(40);
  });

  it('forgets lanes that were closed or have everything in memory again', async () => {
    const database = new CountingStore();
    database.waiting.set('a', { fresh: 5_000, retries: 0 });
    const counter = new QueueDepthCounter(database.queue);
    expect((await counter.count([lane('a')], 0)).flowing.fresh).toBe(5_000);
    expect((await counter.count([lane('a', { backlog: IN_MEMORY })], 0)).flowing.fresh).toBe(0);
    expect((await counter.count([], 0)).flowing.fresh).toBe(0);
  });
});
