import { expect, test } from 'vitest';
import { newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import type { Lane } from './lane.ts';
import { usefulCommitted, usefulItems } from './useful-items.ts';

const NOW = 1_800_000_000_000;
const budgetOf = (laneItems: number, isTight = false) => ({ laneItems, isTight });

test('an endpoint is slow while a request hangs or its last answer took long, and fast again after a fast answer', () => {
  const lane = newLane({ max_in_flight: 10 });
  for (let n = 1; n <= 3; n += 1) lane.addFresh(newItem(n));
  expect([lane.responseTimes.isSlow(NOW), lane.responseTimes.isKnownToBeFast(NOW)]).toEqual([false, false]);
  const [first, second] = [takeNext(lane, NOW)!, takeNext(lane, NOW + 400)!];
  const { responseTimes } = lane;
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
  expect([usefulItems(slow, budgetOf(200), NOW), usefulItems(slow, budgetOf(200), NOW + 2_000)]).toEqual([
    200, 20,
  ]);
  const held = newLane();
  held.holdUntil = NOW + 60_000;
  expect([usefulItems(held, budgetOf(200), NOW), usefulItems(held, budgetOf(200), NOW + 59_000)]).toEqual([
    2, 200,
  ]);
  const limited = newLane({ rate_limit: { per_second: 0.5, burst: 1 } });
  expect(usefulItems(limited, budgetOf(200), NOW)).toBe(6);
});

test('FAN-4: a fast lane with batches keeps two rounds of them in memory; a slow lane, a FIFO lane, and any while memory is tight, two batches', () => {
  const batch = { max_events: 100 };
  const lane = newLane({ max_in_flight: 10, batch });
  lane.addFresh(newItem(1));
  takeNext(lane, NOW + 1_000);
  expect([
    usefulItems(lane, budgetOf(200), NOW + 1_000),
    usefulItems(lane, budgetOf(200), NOW + 5_000),
  ]).toEqual([2_000, 200]);
  const fast = newLane({ max_in_flight: 3, batch });
  expect([usefulItems(fast, budgetOf(200), NOW), usefulItems(fast, budgetOf(200, true), NOW)]).toEqual([
    600, 200,
  ]);
  // At most ten times as many as other lanes, but always two batches.
  expect(usefulItems(newLane({ max_in_flight: 10, batch: { max_events: 1_000 } }), budgetOf(50), NOW)).toBe(
    2_000,
  );
  expect(usefulItems(newLane({ max_in_flight: 100, batch }), budgetOf(50), NOW)).toBe(500);
  expect(usefulItems(newLane({ ordering: 'fifo', batch: { max_events: 500 } }), budgetOf(200), NOW)).toBe(
    1_000,
  );
  expect(usefulItems(newLane({ max_in_flight: 10, batch: { max_events: 1 } }), budgetOf(200), NOW)).toBe(200);
});

test('a lane that is known to be fast takes a burst of committed deliveries into memory, unless it is limited or memory is tight', () => {
  const answered = (config: EndpointConfig): Lane => {
    const lane = newLane({ max_in_flight: 10, ...config });
    lane.addFresh(newItem(1));
    const item = takeNext(lane, NOW)!;
    lane.responseTimes.recordAnswer(item, NOW + 10);
    lane.markAnswered(item);
    return lane;
  };
  const take = (lane: Lane, isTight = false) => usefulCommitted(lane, budgetOf(200, isTight), NOW + 20);
  expect([take(answered({})), take(newLane({})), take(answered({}), true)]).toEqual([2_000, 200, 200]);
  expect(take(answered({ rate_limit: { per_second: 1_000, burst: 1 } }))).toBe(200);
});
