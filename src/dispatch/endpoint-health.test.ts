import { expect, it } from 'vitest';
import { endpointOf, HEALTHY, NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { updateHealth } from './endpoint-health.ts';
import { Lane } from './lane.ts';

const answered = (statusCode: number) => ({
  id: '0190cccc-0000-7000-8000-000000000001',
  eventType: 'a.b',
  outcome: { statusCode, error: null } as AttemptOutcome,
});

it('HLT-1: a late result of a request that was in flight when the circuit opened does not overwrite the stored circuit', () => {
  const lane = newLane({ breaker: { consecutive: 1 } });
  for (let n = 1; n <= 3; n += 1) lane.addFresh(newItem(n));
  const [first, second, third] = [1, 2, 3].map(() => takeNext(lane, NOW)!);
  expect(updateHealth(lane, first!, answered(503), NOW).health).toMatchObject({
    breaker: { circuit: 'open' },
  });
  // A probe may be recorded in the store by the time these are written.
  expect(updateHealth(lane, second!, answered(503), NOW + 1).health).toBeNull();
  expect(updateHealth(lane, third!, answered(200), NOW + 2).health).toBeNull();
});

it('DLV-3: lowers the limit of a slow lane, stores it with a note once, and forgets it if the endpoint changes', () => {
  const lane = newLane({ timeout_ms: 1_000, max_in_flight: 4 });
  for (let n = 1; n <= 40; n += 1) lane.addFresh(newItem(n));
  const slow = {
    ...answered(200),
    outcome: { statusCode: 200, error: null, startedAt: NOW, durationMs: 600 },
  };
  const healths = Array.from({ length: 10 }, (_, n) => {
    while (takeNext(lane, NOW + n) !== null);
    const item = lane.underWay[0]!;
    const { health } = updateHealth(lane, item, slow as never, NOW + n);
    lane.markAnswered(item);
    lane.finish(item);
    return health;
  });
  expect(healths.slice(0, 9)).toEqual(Array(9).fill(null));
  const adaptive = { inFlightLimit: 2, timeoutMs: null, reason: 'slow', since: NOW + 9 };
  expect(healths[9]).toMatchObject({
    adaptive,
    limitNote: { kind: 'posthorn.endpoint.limited', detail: { in_flight_limit: 2, max_in_flight: 4 } },
  });
  expect(lane.inFlightLimit).toBe(2);
  // A failure stores the health again, with the limit.
  const failed = updateHealth(lane, lane.underWay[0]!, answered(503), NOW + 20).health;
  expect(failed).toMatchObject({ adaptive });
  expect(failed).not.toHaveProperty('limitNote');

  lane.reconfigure(endpointOf({ timeout_ms: 1_000, max_in_flight: 8 }), null);
  expect(lane.inFlightLimit).toBe(8);
  const { health } = updateHealth(lane, lane.underWay[0]!, answered(200), NOW + 30);
  expect(health).toMatchObject({ adaptive: null, limitNote: { kind: 'posthorn.endpoint.unlimited' } });

  const off = new Lane(
    endpointOf({ adaptive: 'off' }),
    { ...HEALTHY, adaptive: { ...adaptive, reason: 'slow' } },
    null,
  );
  expect(off.inFlightLimit).toBe(10);
});
