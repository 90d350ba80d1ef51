import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { systemClock } from '../domain/clock.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { LaneBudget } from './lane-budget.ts';
import { Refill } from './refill.ts';

test('a lane that missed an event during a read asks again right after it', async () => {
  const lane = new Lane(anEndpoint('https://example.com/'), HEALTHY, null);
  const filled = Promise.withResolvers<{ isLoading: boolean; moreFresh: boolean }>();
  const refill = new Refill({
    // The event is committed after the read has begun: the read does not show it.
    queue: {
      loadLanes: async () => {
        lane.read.leaveFreshInStore(0);
        return new Map([[lane.id, { fresh: [], due: [] }]]);
      },
    },
    clock: systemClock,
    budget: new LaneBudget({ laneItems: 10, totalItems: 100, totalBytes: 1_000 }),
    scheduler: {
      consider: ({ read }) => filled.resolve({ isLoading: read.isLoading, moreFresh: read.moreFresh }),
    },
    onProblem: (_what, error) => filled.reject(error),
  });
  refill.request(lane, 'all');
  // Still loading, it would not be read again before the next sweep.
  expect(await filled.promise).toEqual({ isLoading: false, moreFresh: true });
  await refill.stop();
});
