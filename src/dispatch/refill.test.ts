import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { LoadedDelivery } from '../ports/delivery-queue.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { LaneBudget } from './lane-budget.ts';
import { Refill } from './refill.ts';

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
