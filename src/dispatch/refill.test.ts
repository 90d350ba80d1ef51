import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { endpointOf, NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import { systemClock } from '../domain/clock.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { newId } from '../domain/ids.ts';
import type { LoadedDelivery } from '../ports/delivery-queue.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { LaneBudget } from './lane-budget.ts';
import { ON_THE_WIRE_MARGIN_MS, Refill } from './refill.ts';

test('a lane that missed an event during a read is considered again right after the read', async () => {
  const lane = new Lane(anEndpoint('https://example.com/'), HEALTHY, null);
  const filled = Promise.withResolvers<{ isLoading: boolean; hasMoreFresh: boolean }>();
  const refill = new Refill({
    // The event is committed after the read has begun, so the read does not return it.
    queue: {
      loadLanes: async () => {
        lane.readProgress.leaveFreshInStore(0);
        return new Map([[lane.id, { fresh: [], due: [] }]]);
      },
    },
    clock: systemClock,
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: {
      consider: ({ readProgress: { isLoading, hasMoreFresh } }) =>
        filled.resolve({ isLoading, hasMoreFresh }),
    },
    onProblem: (_what, error) => filled.reject(error),
  });
  refill.request(lane, 'all');
  // If it were still loading, it would not be read again before the next sweep.
  expect(await filled.promise).toEqual({ isLoading: false, hasMoreFresh: true });
  await refill.stop();
});

test("a start in the future, from before the database's clock stepped back, holds a delivery for one timeout only", async () => {
  const endpoint = anEndpoint('https://example.com/');
  const lane = new Lane(endpoint, HEALTHY, null);
  const now = 1_800_000_000_000;
  lane.earlierRequestsUntil = now + endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS;
  const delivery: LoadedDelivery = {
    id: newId(now),
    endpointId: lane.id,
    seq: 1,
    attempts: 0,
    attemptsBeforeReplay: 0,
    dueAt: null,
    agesFrom: now,
    trigger: 'auto',
    lastErrorClass: null,
    startedAt: now + 40 * 86_400_000,
    carefulStarts: 0,
  };
  const filled = Promise.withResolvers<void>();
  const refill = new Refill({
    queue: { loadLanes: async () => new Map([[lane.id, { fresh: [delivery], due: [] }]]) },
    clock: { ...systemClock, now: () => now },
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: { consider: () => filled.resolve() },
    onProblem: (_what, error) => filled.reject(error),
  });
  refill.request(lane, 'all');
  await filled.promise;
  const readyAt = lane.readyAt(now, systemClock.monotonic());
  expect(readyAt).toBeGreaterThan(now);
  expect(readyAt).toBeLessThan(now + endpoint.timeoutMs + 60_000);
  await refill.stop();
});

test('a lane with a new event is read while a sweep of other lanes still waits for its answer', async () => {
  const swept = Array.from(
    { length: 300 },
    () => new Lane(anEndpoint('https://example.com/'), HEALTHY, null),
  );
  const fresh = new Lane(anEndpoint('https://example.com/'), HEALTHY, null);
  const reads: number[] = [];
  const freshRead = Promise.withResolvers<void>();
  const sweepAnswer = Promise.withResolvers<void>();
  const refill = new Refill({
    queue: {
      loadLanes: async (requests) => {
        reads.push(requests.length);
        const answer = new Map(requests.map(({ endpointId }) => [endpointId, { fresh: [], due: [] }]));
        if (requests.some(({ endpointId }) => endpointId === fresh.id)) freshRead.resolve();
        else await sweepAnswer.promise;
        return answer;
      },
    },
    clock: systemClock,
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: { consider: () => {} },
    onProblem: (_what, error) => freshRead.reject(error),
  });
  for (const lane of swept) refill.request(lane, 'sweep');
  refill.request(fresh, 'recent');
  await freshRead.promise;
  expect(reads.toSorted((a, b) => a - b)).toEqual([1, 200]);
  sweepAnswer.resolve();
  await refill.stop();
});

test('the store is quiet once no acceptance number was assigned for 30 seconds, while it answers', () => {
  let elapsedMs = 0;
  const refill = new Refill({
    queue: { loadLanes: async () => new Map() },
    clock: { ...systemClock, monotonic: () => elapsedMs },
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: { consider: () => {} },
    onProblem: () => {},
  });
  const pass = (seconds: number, seq: number): boolean => {
    for (let second = 0; second < seconds; second += 1) {
      elapsedMs += 1_000;
      refill.markSeq(seq);
    }
    return refill.isStoreQuiet;
  };
  expect(refill.isStoreQuiet).toBe(false);
  // Never used, or used once: the first event must be found as well.
  expect(pass(60, 1)).toBe(false);
  expect(pass(20, 7)).toBe(false);
  expect(pass(20, 7)).toBe(true);
  expect(pass(1, 8)).toBe(false);
  expect(pass(40, 8)).toBe(true);
  elapsedMs += 10_000;
  expect(refill.isStoreQuiet).toBe(false);
  expect(pass(1, 8)).toBe(true);
  refill.forgetMarks();
  expect(pass(1, 8)).toBe(false);
});

test('DSP-3: a FIFO lane forgets deliveries that must wait for an earlier event, if that event was committed after they were loaded', async () => {
  const lane = new Lane({ ...anEndpoint('https://example.com/'), ordering: 'fifo' }, HEALTHY, null);
  const stored = [1, 2].map(
    (seq): LoadedDelivery => ({
      id: newId(seq),
      endpointId: lane.id,
      seq,
      attempts: 0,
      attemptsBeforeReplay: 0,
      dueAt: null,
      agesFrom: 0,
      trigger: 'auto',
      lastErrorClass: null,
      startedAt: null,
      carefulStarts: 0,
      batchId: null,
    }),
  );
  let isSecondHeldBack = false;
  let onRead = () => {};
  const refill = new Refill({
    queue: {
      loadLanes: async () => {
        const fresh = isSecondHeldBack ? stored.slice(0, 1) : stored;
        return new Map([[lane.id, { fresh, due: [] }]]);
      },
    },
    clock: systemClock,
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: { consider: () => onRead() },
    onProblem: () => {},
  });
  const read = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    onRead = resolve;
    refill.request(lane, 'sweep');
    await promise;
    return lane.queuedFresh;
  };
  expect(await read()).toBe(2);
  // The store now knows an event between the two whose deliveries are not all written.
  isSecondHeldBack = true;
  expect(await read()).toBe(1);
  isSecondHeldBack = false;
  expect(await read()).toBe(2);
  await refill.stop();
});

test('a lane with a backlog continues after the last row, and looks back every half second and before it is complete', async () => {
  let elapsedMs = 0;
  const lane = newLane({ max_in_flight: 50 });
  const rows = Array.from({ length: 65 }, (_, index) => rowOf(index + 1));
  const reads: (readonly [number | null, number])[] = [];
  const refill = new Refill({
    queue: {
      loadLanes: async ([request]) => {
        const { freshAfter, limit } = request!;
        const fresh = rows.filter(({ seq }) => seq > freshAfter!).slice(0, limit);
        reads.push([freshAfter, fresh.length]);
        return new Map([[lane.id, { fresh, due: [] }]]);
      },
    },
    clock: { ...systemClock, now: () => NOW + elapsedMs, monotonic: () => elapsedMs },
    budget: new LaneBudget({ laneItems: 20, totalItems: 1_000, totalBytes: 1_000 }),
    scheduler: { consider: () => {} },
    onProblem: (_what, error) => {
      throw error;
    },
  });
  /** Sends and settles everything in memory, then loads more. */
  const sendAll = async (): Promise<void> => {
    for (let item = takeNext(lane, NOW); item !== null; item = takeNext(lane, NOW)) {
      lane.markAnswered(item);
      lane.finish(item);
      const { id } = item.delivery;
      rows.splice(
        rows.findIndex((row) => row.id === id),
        1,
      );
    }
    refill.loadIfLow(lane, NOW + elapsedMs);
    await new Promise(setImmediate);
  };
  refill.request(lane, 'all');
  await new Promise(setImmediate);
  await sendAll();
  expect(reads).toEqual([
    [0, 20],
    [20, 20],
  ]);
  // A delivery with a lower number becomes visible late. The next look back finds it.
  rows.unshift(rowOf(5));
  elapsedMs = 600;
  await sendAll();
  expect(reads.slice(2)).toEqual([[0, 20]]);
  expect(rows[0]!.seq).toBe(5);
  await sendAll();
  expect(reads.slice(3)).toEqual([[59, 6]]);
  expect(lane.readProgress.hasMoreFresh).toBe(true);
  await sendAll();
  expect(reads.slice(4)).toEqual([[0, 0]]);
  expect([lane.readProgress.hasMoreFresh, rows]).toEqual([false, []]);
  await refill.stop();
});

const rowOf = (seq: number): LoadedDelivery => ({
  ...newItem(seq).delivery,
  startedAt: null,
  carefulStarts: 0,
});

test('a lane with debounce and an open circuit loads more than candidates for a probe: those may have to wait for another delivery', async () => {
  const openCircuit = (config: EndpointConfig): Lane => {
    const breaker = { ...CLOSED_BREAKER, circuit: 'open' as const, openedAt: NOW, nextProbeAt: NOW };
    const lane = new Lane(endpointOf(config), { ...HEALTHY, breaker }, null);
    for (const n of [1, 2]) lane.addRetry(newItem(n, { dueAt: NOW - 10_000 }));
    lane.readProgress.recordRetries(0, NOW - 5_000, false);
    lane.readProgress.recordFresh(0, true);
    return lane;
  };
  const loaded: Lane[] = [];
  const refill = new Refill({
    queue: { loadLanes: async () => new Map() },
    clock: { ...systemClock, now: () => NOW },
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: { consider: () => {} },
    onProblem: () => {},
  });
  refill.request = (lane) => void loaded.push(lane);
  const debounced = openCircuit({ debounce: { key: 'data.key', window_ms: 50 } });
  for (const lane of [debounced, openCircuit({})]) refill.loadIfLow(lane, NOW);
  expect(loaded).toEqual([debounced]);
  await refill.stop();
});
