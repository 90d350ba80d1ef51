import { describe, expect, test } from 'vitest';
import { resolveEndpoint } from '../domain/endpoint-config.ts';
import { newId } from '../domain/ids.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Lane, type LaneItem } from './lane.ts';

const NOW = 1_800_000_000_000;

function newLane(ordering: 'none' | 'fifo'): Lane {
  const record = {
    id: newId(NOW),
    tenant: 'acme',
    url: 'https://example.com',
    config: { ordering },
    enabled: true,
    disabledReason: null,
    paused: false,
    deleted: false,
  };
  return new Lane(resolveEndpoint(record, []), HEALTHY, null);
}

function item(lane: Lane, id: string, attempts: number, dueAt: number | null, seq = 1): LaneItem {
  return {
    delivery: {
      id,
      endpointId: lane.id,
      seq,
      attempts,
      attemptsBeforeReplay: 0,
      dueAt,
      agesFrom: NOW,
      trigger: 'auto',
      lastErrorClass: null,
    },
    event: null,
    state: 'queued',
    isProbe: false,
    notBefore: 0,
    crashes: 0,
  };
}

describe('a lane that loads a delivery it knows already', () => {
  test('makes a replayed delivery due now', () => {
    const lane = newLane('none');
    const id = newId(NOW);
    lane.addRetry(item(lane, id, 1, NOW + 60_000));
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 60_000);
    lane.addRetry(item(lane, id, 1, NOW));
    expect(lane.readyAt(NOW, 0)).toBe(NOW);
    expect(lane.take('retry', NOW, 0)?.delivery.id).toBe(id);
    expect(lane.take('retry', NOW + 60_000, 0)).toBeNull();
  });

  test('makes a replayed FIFO head due now and keeps its place', () => {
    const lane = newLane('fifo');
    const [head, next] = [newId(NOW), newId(NOW)];
    lane.addFresh(item(lane, head, 1, NOW + 60_000, 1));
    lane.addFresh(item(lane, next, 0, null, 2));
    expect(lane.readyAt(NOW, 0)).toBe(NOW + 60_000);
    lane.addFresh(item(lane, head, 1, NOW, 1));
    expect(lane.readyAt(NOW, 0)).toBe(NOW);
    expect(lane.take('retry', NOW, 0)?.delivery.id).toBe(head);
  });

  test.each(['none', 'fifo'] as const)(
    'loads a delivery again that was replayed before the lane knew of its end (%s)',
    (ordering) => {
      const lane = newLane(ordering);
      const id = newId(NOW);
      const add = (read: LaneItem) => (ordering === 'fifo' ? lane.addFresh(read) : lane.addRetry(read));
      const read = (found: LaneItem) => {
        lane.readProgress.begin();
        add(found);
        lane.readProgress.recordFresh(1, true);
        lane.readProgress.recordRetries(0, NOW, true);
        lane.readProgress.end();
      };
      read(item(lane, id, 1, NOW));
      expect([lane.readProgress.hasMoreFresh, lane.readProgress.retryHorizon]).toEqual([
        false,
        Number.POSITIVE_INFINITY,
      ]);
      const taken = lane.take('retry', NOW, 0)!;
      lane.markAnswered(taken);
      const back = item(lane, id, 2, NOW + 5, 2);
      const replayed = { ...back, delivery: { ...back.delivery, trigger: 'replay' as const } };
      read(replayed);
      lane.finish(taken);
      expect(lane.readProgress.hasMoreFresh || lane.readProgress.retryHorizon <= NOW + 5).toBe(true);
      read(replayed);
      expect(lane.readyAt(NOW, 0)).toBe(NOW + 5);
      expect([lane.readProgress.hasMoreFresh, lane.readProgress.retryHorizon]).toEqual([
        false,
        Number.POSITIVE_INFINITY,
      ]);
    },
  );

  test.each(['none', 'fifo'] as const)(
    'ignores a read that is older than the last recorded attempt (%s)',
    (ordering) => {
      const lane = newLane(ordering);
      const id = newId(NOW);
      const add = (read: LaneItem) => (ordering === 'fifo' ? lane.addFresh(read) : lane.addRetry(read));
      lane.readProgress.retryHorizon = Number.POSITIVE_INFINITY;
      add(item(lane, id, 1, NOW));
      const taken = lane.take('retry', NOW, 0)!;
      // The read sees the row as it is now …
      lane.readProgress.begin();
      const before = item(lane, id, 1, NOW);
      // … the attempt fails, and its retry is recorded …
      lane.markAnswered(taken);
      lane.reschedule(taken, { ...taken.delivery, attempts: 2, dueAt: NOW + 60_000 }, true);
      // … and only then the read arrives.
      add(before);
      lane.readProgress.end();
      expect(lane.readyAt(NOW, 0)).toBe(NOW + 60_000);
    },
  );
});
