import { expect, test } from 'vitest';
import { anEvent } from '../../test/support/attempts.ts';
import { ENDPOINT_ID, endpointOf, HEALTHY } from '../../test/support/lanes.ts';
import { systemClock } from '../domain/clock.ts';
import type { EndpointConfig } from '../domain/endpoint-config.ts';
import { deliveryIdOf, newEventId, newId } from '../domain/ids.ts';
import { Lane } from './lane.ts';
import { LaneBudget } from './lane-budget.ts';
import { LaneIntake } from './lane-intake.ts';
import { LaneRegistry } from './lane-registry.ts';
import type { Refill } from './refill.ts';

/** A lane whose stored deliveries are all in memory. Returns the sizes of its queue when it was considered. */
function start(config: EndpointConfig, totalBytes = 1_000_000) {
  const budget = new LaneBudget({ laneItems: 200, totalItems: 50_000, totalBytes });
  const lanes = new LaneRegistry();
  const lane = new Lane(endpointOf(config), HEALTHY, null, budget);
  lane.readProgress.recordFresh(0, true);
  lanes.addShard(lane.shard);
  lanes.add(lane);
  const considered: number[] = [];
  const refill = { seqBefore: () => 0 } as unknown as Refill;
  const intake = new LaneIntake({
    clock: systemClock,
    ownership: { owns: () => true },
    endpoints: { get: () => undefined },
    lanes,
    budget,
    refill,
    scheduler: { consider: ({ queuedFresh }) => void considered.push(queuedFresh) },
    recentStarts: { has: () => false },
  });
  const offer = (count: number): void => {
    for (let n = 0; n < count; n += 1) {
      const now = systemClock.now();
      const event = anEvent({ id: newEventId(now) });
      const delivery = { id: deliveryIdOf(event.id, 0), endpointId: ENDPOINT_ID, dueAt: null, fifo: false };
      intake.offer(delivery, event, { sentAt: now, endpointVersion: 1 });
    }
  };
  return { lane, budget, considered, offer, intake, refill };
}

test('FAN-4: events of a commit stay in memory with their payloads, as many as two rounds of batches need', () => {
  const { lane, offer } = start({ max_in_flight: 5, batch: { max_events: 100 } });
  offer(1_000);
  expect([lane.queuedFresh, lane.readProgress.hasMoreFresh]).toEqual([1_000, false]);
  offer(1);
  expect([lane.queuedFresh, lane.readProgress.hasMoreFresh]).toEqual([1_000, true]);
});

test('FAN-4: a lane with batches is considered for the first event and for every full batch, others for each event', () => {
  const batched = start({ batch: { max_events: 100 } });
  batched.offer(250);
  expect(batched.considered).toEqual([1, 100, 200]);
  const single = start({});
  single.offer(3);
  expect(single.considered).toEqual([1, 2, 3]);
});

test('FAN-4: payloads of events that only a lane with batches may queue fill at most half of their memory', () => {
  const bytes = anEvent().data.length;
  const { lane, budget, offer } = start({ batch: { max_events: 100 } }, 1_000 * bytes);
  offer(1_000);
  expect([lane.queuedFresh, budget.bytes]).toEqual([1_000, 500 * bytes]);
});

test('an event whose id was made before the clock was set back by 40 days is not sent 40 days later in its batch', () => {
  const { lane, intake } = start({ batch: { max_events: 100, max_wait_ms: 200 } });
  const now = systemClock.now();
  const event = anEvent({ id: newId(now + 40 * 86_400_000).replace(/.{5}$/, '00000') });
  const delivery = { id: deliveryIdOf(event.id, 0), endpointId: ENDPOINT_ID, dueAt: null, fifo: false };
  intake.offer(delivery, event, { sentAt: now, endpointVersion: 1 });
  expect(lane.queuedFresh).toBe(1);
  expect(lane.readyAt(now, systemClock.monotonic())).toBeLessThan(now + 10_000);
});

test('DSP-2: a delivery that was committed before this worker took the lane over is read from the store', () => {
  const requested: string[] = [];
  const { lane, offer, refill } = start({});
  refill.request = (_, scope) => void requested.push(scope);
  lane.readProgress.takenOverAt = systemClock.now() + 500;
  offer(1);
  expect([lane.queuedFresh, requested]).toEqual([0, ['sweep']]);
  lane.readProgress.takenOverAt = systemClock.now() - 500;
  offer(1);
  expect([lane.queuedFresh, requested]).toEqual([1, ['sweep']]);
});
