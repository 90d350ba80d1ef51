import { expect, test } from 'vitest';
import type { Lane } from './lane.ts';
import { LoadRequests } from './load-requests.ts';

test('taking lanes for a read looks only at those lanes, however many wait', () => {
  let looks = 0;
  const requests = new LoadRequests();
  const lanes = Array.from({ length: 100_000 }, () => {
    const lane = {
      readProgress: { isLoading: false },
      get isClosed() {
        looks += 1;
        return false;
      },
    };
    return lane as unknown as Lane;
  });
  for (const lane of lanes) requests.add(lane, { scope: 'sweep', since: 0 }, 'background');
  // A new event makes the last one urgent.
  requests.add(lanes.at(-1)!, { scope: 'recent', since: 0 }, 'urgent');
  expect(requests.take(['urgent'])?.[0]).toBe(lanes.at(-1));
  for (let taken = 0; taken < 200; taken += 1)
    expect(requests.take(['normal', 'background'])?.[0]).toBe(lanes[taken]);
  expect(looks).toBe(201);
  expect(requests.hasAny(['urgent'])).toBe(false);
});
