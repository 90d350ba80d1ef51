import { expect, it } from 'vitest';
import { NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { updateHealth } from './endpoint-health.ts';

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
