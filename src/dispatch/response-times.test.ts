import { expect, test } from 'vitest';
import { newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import { usefulItems } from './useful-items.ts';

const NOW = 1_800_000_000_000;

test('an endpoint is slow while a request hangs or its last answer took long, and fast again after a fast answer', () => {
  const lane = newLane({ max_in_flight: 10 });
  for (let n = 1; n <= 3; n += 1) lane.addFresh(newItem(n));
  const { responseTimes } = lane;
  expect([responseTimes.isSlow(NOW), responseTimes.isKnownToBeFast(NOW)]).toEqual([false, false]);
  const [first, second] = [takeNext(lane, NOW)!, takeNext(lane, NOW + 400)!];
  expect([responseTimes.isSlow(NOW + 999), responseTimes.isSlow(NOW + 1_001)]).toEqual([false, true]);
  responseTimes.recordAnswer(second, NOW + 500);
  lane.markAnswered(second);
  // A fast answer says nothing about the older request, which still hangs.
  expect([responseTimes.isSlow(NOW + 600), responseTimes.isSlow(NOW + 1_001)]).toEqual([false, true]);
  responseTimes.recordAnswer(first, NOW + 25_000);
  lane.markAnswered(first);
  expect([responseTimes.isSlow(NOW + 25_000), responseTimes.isKnownToBeFast(NOW + 25_000)]).toEqual([
    true,
    false,
  ]);
  const third = takeNext(lane, NOW + 30_000)!;
  responseTimes.recordAnswer(third, NOW + 30_010);
  lane.markAnswered(third);
  expect([responseTimes.isSlow(NOW + 30_010), responseTimes.isKnownToBeFast(NOW + 30_010)]).toEqual([
    false,
    true,
  ]);
});

test('a slow lane, a held lane and a lane with a rate limit keep in memory only what they can send soon', () => {
  const slow = newLane({ max_in_flight: 10 });
  slow.addFresh(newItem(1));
  takeNext(slow, NOW);
  expect([usefulItems(slow, 200, NOW), usefulItems(slow, 200, NOW + 2_000)]).toEqual([200, 20]);
  const held = newLane();
  held.holdUntil = NOW + 60_000;
  expect([usefulItems(held, 200, NOW), usefulItems(held, 200, NOW + 59_000)]).toEqual([2, 200]);
  const limited = newLane({ rate_limit: { per_second: 0.5, burst: 1 } });
  expect(usefulItems(limited, 200, NOW)).toBe(6);
});
