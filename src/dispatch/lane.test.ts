import { describe, expect, it } from 'vitest';
import { endpointOf, HEALTHY, NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import type { EventContent } from '../domain/event.ts';
import { Pace } from '../domain/pace.ts';
import { Lane } from './lane.ts';

describe('a lane', () => {
  it('DSP-3: has at most max_in_flight on the wire', () => {
    const lane = newLane({ max_in_flight: 3 });
    for (let n = 1; n <= 5; n += 1) lane.addFresh(newItem(n));
    const taken = [1, 2, 3].map(() => takeNext(lane, NOW)!);
    expect(takeNext(lane, NOW)).toBeNull();
    expect(lane.readyAt(NOW, 0)).toBe(Number.POSITIVE_INFINITY);
    lane.markAnswered(taken[0]!);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(4);
  });

  it('FIFO: sends the next delivery only after the last result is recorded', () => {
    const lane = newLane({ ordering: 'fifo' });
    for (const n of [2, 3, 1]) lane.addFresh(newItem(n));
    const first = takeNext(lane, NOW)!;
    expect(first.delivery.seq).toBe(1);
    lane.markAnswered(first);
    expect(takeNext(lane, NOW)).toBeNull();
    lane.finish(first);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(2);
  });

  it('FIFO: waits for the retry of its head, even if an earlier delivery arrives meanwhile', () => {
    const lane = newLane({ ordering: 'fifo' });
    lane.addFresh(newItem(1));
    lane.addFresh(newItem(2));
    const head = takeNext(lane, NOW)!;
    lane.markAnswered(head);
    head.crashes = 1;
    lane.reschedule(head, { ...head.delivery, attempts: 1, dueAt: NOW + 5_000 }, true);
    // The attempt did not crash its worker.
    expect(head.crashes).toBe(0);
    lane.addFresh(newItem(0));
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 5_000);
    expect(takeNext(lane, NOW + 5_000)).toBe(head);
  });

  it('FIFO: forgets its queue when it may not have the right head', () => {
    for (const how of ['drop', 'not moved'] as const) {
      const lane = newLane({ ordering: 'fifo' });
      lane.addFresh(newItem(1));
      lane.addFresh(newItem(2));
      const head = takeNext(lane, NOW)!;
      if (how === 'drop') lane.drop(head);
      else {
        lane.markAnswered(head);
        lane.finish(head, false);
      }
      expect(takeNext(lane, NOW)).toBeNull();
      expect([lane.readProgress.hasMoreFresh, lane.readProgress.freshCursor, lane.size]).toEqual([
        true,
        0,
        0,
      ]);
    }
  });

  it('never has a replayed fresh delivery in two queues', () => {
    const lane = newLane();
    lane.addFresh(newItem(1));
    lane.addRetry(newItem(1, { dueAt: NOW - 10, trigger: 'replay' }));
    const taken = lane.take('retry', NOW, 0) ?? lane.take('fresh', NOW, 0);
    expect(taken?.delivery.trigger).toBe('replay');
    expect(lane.take('fresh', NOW, 0)).toBeNull();
    expect(lane.take('retry', NOW, 0)).toBeNull();
  });

  it('RTY-7: moves a waiting retry that was made due now, and counts it once', () => {
    const lane = newLane();
    lane.readProgress.retryHorizon = Number.POSITIVE_INFINITY;
    lane.addRetry(newItem(1, { attempts: 1, dueAt: NOW + 3_600_000 }));
    lane.addRetry(newItem(1, { attempts: 1, dueAt: NOW }));
    expect(lane.queuedRetries).toBe(1);
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(1);
    expect(takeNext(lane, NOW + 7_200_000)).toBeNull();
    expect(lane.queuedRetries).toBe(0);
  });

  it('sends other deliveries while an earlier owner may have one on the wire', () => {
    const lane = newLane();
    lane.addFresh(newItem(1, {}, NOW + 10_000));
    lane.addFresh(newItem(2));
    expect(takeNext(lane, NOW)?.delivery.seq).toBe(2);
    expect(takeNext(lane, NOW)).toBeNull();
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 10_000);
    expect(takeNext(lane, NOW + 10_000)?.delivery.seq).toBe(1);
  });

  it('HLT-1: sends the oldest due delivery as the only probe while its circuit is open', () => {
    const lane = newLane({ breaker: { consecutive: 1, cooldown_seconds: 10 } });
    lane.readProgress.retryHorizon = Number.POSITIVE_INFINITY;
    lane.addFresh(newItem(2, { agesFrom: NOW - 10 }));
    lane.addRetry(newItem(1, { attempts: 1, dueAt: NOW, agesFrom: NOW - 20 }));
    lane.breaker.recordSignal('failure', NOW, false);
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 10_000);
    expect(lane.readyKinds(NOW + 10_000)).toEqual({ fresh: false, retry: true });
    const probe = takeNext(lane, NOW + 10_000)!;
    expect([probe.delivery.seq, probe.isProbe]).toEqual([1, true]);
    expect(lane.readyAt(NOW + 20_000, 0)).toBe(Number.POSITIVE_INFINITY);
    lane.putBack(probe);
    expect(lane.readyAt(NOW + 20_000, 0)).toBe(NOW + 20_000);
  });

  it('DSP-7: starts slowly, doubling with each round of successes', () => {
    const lane = newLane({ max_in_flight: 10 });
    lane.slowStart.start();
    const limits: number[] = [];
    for (let i = 0; i < 16; i += 1) {
      limits.push(lane.inFlightLimit);
      lane.slowStart.recordSuccess(lane.endpoint.maxInFlight);
    }
    expect(limits).toEqual([1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 10]);
  });

  it('DSP-5: gives a retry its turn after three fresh deliveries', () => {
    const lane = newLane();
    for (let n = 1; n <= 9; n += 1) lane.addFresh(newItem(n));
    lane.addRetry(newItem(20, { attempts: 1, dueAt: NOW }));
    for (let i = 0; i < 3; i += 1) {
      expect(lane.isRetryTurn(NOW)).toBe(false);
      lane.take('fresh', NOW, 0);
    }
    expect(lane.isRetryTurn(NOW)).toBe(true);
    expect(lane.readyKinds(NOW)).toEqual({ fresh: true, retry: true });
    lane.take('retry', NOW, 0);
    expect(lane.isRetryTurn(NOW)).toBe(false);
  });

  it('DSP-3: takes a token for every request and returns it for one that was not sent', () => {
    const lane = new Lane(endpointOf({}), HEALTHY, new Pace({ perSecond: 1, burst: 1 }, 0, 1));
    for (let n = 1; n <= 3; n += 1) lane.addFresh(newItem(n));
    const first = lane.take('fresh', NOW, 0)!;
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 1_000);
    lane.putBack(first);
    expect(lane.readyAt(NOW, 0)).toBe(NOW);
    expect(lane.take('fresh', NOW, 0)).toBe(first);
    expect(lane.take('fresh', NOW, 0)).toBeNull();
    expect(lane.queuedFresh).toBe(2);
  });

  it('FAN-4: a delivery that is dropped without a request leaves its turn of the rate limit to the next', () => {
    const lane = new Lane(endpointOf({}), HEALTHY, new Pace({ perSecond: 1, burst: 1 }, 0, 1));
    for (let n = 1; n <= 3; n += 1) lane.addFresh(newItem(n));
    for (let n = 1; n <= 2; n += 1) lane.drop(lane.take('fresh', NOW, 0)!);
    expect(lane.take('fresh', NOW, 0)).not.toBeNull();
  });

  it('DSP-3: requests delayed by slow payloads do not exceed the rate when they are sent', () => {
    const lane = new Lane(endpointOf({}), HEALTHY, new Pace({ perSecond: 10, burst: 2 }, 0, 2));
    for (let n = 1; n <= 9; n += 1) lane.addFresh(newItem(n));
    for (const at of [0, 0, 5_000, 5_000]) expect(lane.take('fresh', NOW, at)).not.toBeNull();
    expect([lane.tryStart(5_000), lane.tryStart(5_000), lane.tryStart(5_000)]).toEqual([0, 0, 100]);
    expect(lane.tryStart(5_100)).toBe(0);
  });

  it('drops later retries when there is no room for earlier ones', () => {
    const lane = newLane();
    lane.readProgress.retryHorizon = Number.POSITIVE_INFINITY;
    for (let n = 1; n <= 5; n += 1) lane.addRetry(newItem(n, { attempts: 1, dueAt: NOW + n * 1_000 }));
    lane.readProgress.leaveRetryInStore(NOW + 3_500);
    lane.dropRetriesBeyondHorizon();
    expect([lane.queuedRetries, lane.size, lane.readProgress.retryHorizon]).toEqual([3, 3, NOW + 3_500]);
    lane.dropRetriesBeyondHorizon();
    expect(lane.queuedRetries).toBe(3);
  });

  it('waits as long as a receiver asked the earlier owner to wait', () => {
    const lane = new Lane(endpointOf({}), { ...HEALTHY, holdUntil: NOW + 60_000 }, null);
    lane.addFresh(newItem(1));
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 60_000);
  });

  it.each(['answered', 'closed', 'put back and cleared'])(
    'counts the payload of a request on the wire until it is %s',
    (how) => {
      const memory = { items: 0, bytes: 0 };
      const lane = newLane({}, memory);
      lane.addFresh(newItem(1));
      const item = takeNext(lane, NOW)!;
      lane.holdPayload(item, { data: Buffer.alloc(10) } as EventContent);
      lane.holdPayload(item, { data: Buffer.alloc(10) } as EventContent);
      expect(memory.bytes).toBe(10);
      if (how === 'answered') lane.markAnswered(item);
      else if (how === 'closed') lane.close();
      else {
        lane.putBack(item);
        lane.clearQueue();
      }
      expect(memory.bytes).toBe(0);
    },
  );

  it('does not count a request that was never sent as hanging', () => {
    const lane = newLane();
    lane.addFresh(newItem(1));
    lane.putBack(takeNext(lane, NOW)!);
    expect(lane.responseTimes.oldestStartAt).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a requested probe', () => {
  const OPEN = {
    circuit: 'open',
    consecutiveFailures: 5,
    openedAt: NOW,
    cooldownMs: 300_000,
    nextProbeAt: NOW + 300_000,
  } as const;
  const openLane = (config = {}, pace: Pace | null = null) =>
    new Lane(endpointOf(config), { ...HEALTHY, breaker: OPEN }, pace);

  it('is sent while the circuit is open, before it is due, and nothing else with it', () => {
    const lane = openLane();
    lane.addFresh(newItem(1));
    lane.addRetry(newItem(2, { attempts: 1, dueAt: NOW + 60_000 }));
    lane.requestProbe(newItem(2, { attempts: 1, dueAt: NOW + 60_000 }));
    const probe = takeNext(lane, NOW)!;
    expect(probe).toMatchObject({ delivery: { seq: 2 }, isProbe: true, isRequested: true });
    expect(lane.readyAt(NOW, 0)).toBe(Number.POSITIVE_INFINITY);
    // A failure leaves the cooldown as it was.
    expect(lane.breaker.recordSignal('failure', NOW + 10, probe.isProbe, probe.isRequested)).toBe(false);
    lane.markAnswered(probe);
    lane.reschedule(probe, { ...probe.delivery, attempts: 2, dueAt: NOW + 90_000 }, true);
    expect(lane.breaker.record).toEqual(OPEN);
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 300_000);
    expect([lane.queuedFresh, lane.queuedRetries, lane.size]).toEqual([1, 0, 1]);
  });

  it('closes the circuit if it succeeds', () => {
    const lane = openLane();
    lane.requestProbe(newItem(1));
    const probe = takeNext(lane, NOW)!;
    expect(lane.breaker.recordSignal('success', NOW, probe.isProbe, probe.isRequested)).toBe(true);
    expect(lane.breaker.allowsTraffic).toBe(true);
  });

  it('waits for a token of the rate limit, for Retry-After, and for a probe of an earlier owner', () => {
    const limited = openLane({}, new Pace({ perSecond: 1, burst: 1 }, 0, 0));
    limited.requestProbe(newItem(1));
    expect(limited.readyAt(NOW, 0)).toBe(NOW + 1_000);
    const held = openLane();
    held.requestProbe(newItem(1));
    held.holdUntil = NOW + 700;
    expect(held.readyAt(NOW, 0)).toBe(NOW + 700);
    held.breaker.startProbe(NOW + 5_000);
    expect(held.readyAt(NOW, 0)).toBe(NOW + 5_000);
    const onWire = openLane();
    onWire.requestProbe(newItem(1, {}, NOW + 9_000));
    onWire.addFresh(newItem(2));
    expect(onWire.readyAt(NOW, 0)).toBe(NOW + 9_000);
  });

  it('stays requested when the request was not sent, and when the queue is cleared', () => {
    const lane = openLane();
    lane.addFresh(newItem(1));
    lane.requestProbe(newItem(1));
    lane.putBack(takeNext(lane, NOW)!);
    lane.clearQueue();
    expect(lane.size).toBe(1);
    expect(takeNext(lane, NOW)).toMatchObject({ delivery: { seq: 1 }, isRequested: true });
  });

  it('is not sent a second time if its request is read again while it is under way', () => {
    const lane = openLane();
    lane.readProgress.retryHorizon = Number.POSITIVE_INFINITY;
    lane.requestProbe(newItem(1));
    const probe = takeNext(lane, NOW)!;
    lane.requestProbe(newItem(1));
    lane.markAnswered(probe);
    lane.requestProbe(newItem(1));
    expect(takeNext(lane, NOW)).toBeNull();
    lane.reschedule(probe, { ...probe.delivery, attempts: 1, dueAt: NOW + 10 }, true);
    lane.requestProbe(newItem(1));
    expect(takeNext(lane, NOW + 100)).toBeNull();
  });

  it('FIFO: is sent only from the head, before it is due', () => {
    const lane = openLane({ ordering: 'fifo' });
    lane.requestProbe(newItem(1, { attempts: 1, dueAt: NOW + 60_000 }));
    expect(takeNext(lane, NOW)).toBeNull();
    lane.addFresh(newItem(1, { attempts: 1, dueAt: NOW + 60_000 }));
    lane.addFresh(newItem(2));
    const probe = takeNext(lane, NOW)!;
    expect(probe).toMatchObject({ delivery: { seq: 1 }, isProbe: true, isRequested: true });
    lane.markAnswered(probe);
    lane.reschedule(probe, { ...probe.delivery, attempts: 2, dueAt: NOW + 90_000 }, true);
    // Read before the result was recorded.
    lane.requestProbe(newItem(1, { attempts: 1, dueAt: NOW + 60_000 }));
    expect(takeNext(lane, NOW)).toBeNull();
  });

  it('is the next delivery of a closed circuit, and a delivery scheduled for later waits', () => {
    const lane = newLane();
    lane.addFresh(newItem(1));
    lane.requestProbe(newItem(2, { dueAt: NOW + 5_000 }));
    expect(takeNext(lane, NOW)).toMatchObject({ delivery: { seq: 1 } });
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 5_000);
    expect(takeNext(lane, NOW + 5_000)).toMatchObject({ delivery: { seq: 2 }, isProbe: false });
  });
});
