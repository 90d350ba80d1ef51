import { expect, test } from 'vitest';
import { anEndpoint } from '../../test/support/attempts.ts';
import { systemClock } from '../domain/clock.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane } from './lane.ts';
import { Refill } from './refill.ts';

test('a lane that missed an event while it was being read can ask again as soon as the read is over', async () => {
  const lane = new Lane(anEndpoint('https://example.com/'), HEALTHY, null);
  const filled = Promise.withResolvers<{ loading: boolean; moreFresh: boolean }>();
  const refill = new Refill({
    // The event is committed after the read has begun: the read does not show it.
    queue: {
      loadLanes: async () => {
        lane.read.missedFresh(0);
        return new Map([[lane.id, { fresh: [], due: [] }]]);
      },
    },
    clock: systemClock,
    laneItems: 10,
    room: () => 100,
    filled: ([lane]) => filled.resolve({ loading: lane!.read.loading, moreFresh: lane!.read.moreFresh }),
    failed: filled.reject,
  });
  refill.want(lane, 'bottom');
  // Still loading, it would not be read again before the next sweep.
  expect(await filled.promise).toEqual({ loading: false, moreFresh: true });
  await refill.stop();
});
