import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { systemClock } from '../domain/clock.ts';
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
