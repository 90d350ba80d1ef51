import { expect, it } from 'vitest';
import { anEndpoint, anEvent } from '../../test/support/attempts.ts';
import { newEventId } from '../domain/ids.ts';
import type { AttemptRequest, ConversionResult } from '../ports/stages.ts';
import { Attempts } from './attempts.ts';
import type { AttemptsOptions } from './attempts-options.ts';
import type { Lane, LaneItem } from './lane.ts';

it('VER-2: a payload that was converted for another version than the endpoint pins now is not sent', () => {
  const budget = { bytes: 0 };
  const conversions: ((result: ConversionResult) => void)[] = [];
  const sent: AttemptRequest[] = [];
  const attempts = new Attempts({
    clock: { now: () => 1_000, monotonic: () => 1_000 },
    ownership: { maySend: () => true },
    payloads: { isExpunged: () => false },
    converter: {
      concerns: () => true,
      convert: (_request: unknown, done: (result: ConversionResult) => void) => conversions.push(done),
    },
    send: (request: AttemptRequest) => sent.push(request),
    scheduler: { release: () => {} },
    laneKeeper: { onAttemptEnded: () => {} },
    budget,
    recentStarts: { add: () => {} },
  } as unknown as AttemptsOptions);
  const putBack: LaneItem[] = [];
  const lane = {
    endpoint: anEndpoint('https://example.com/', { apiVersion: 'v1' }),
    isActive: true,
    breaker: { allowsTraffic: true },
    holdUntil: 0,
    tryStart: () => 0,
    putBack: (item: LaneItem) => putBack.push(item),
  };
  const event = anEvent();
  const delivery = { id: newEventId(1), attempts: 0, agesFrom: 1_000, dueAt: null };
  const item = { delivery, event, crashes: 0, notBefore: 0 } as Partial<LaneItem> as LaneItem;
  const start = () => attempts.start(lane as unknown as Lane, item);
  const converted = { ...event, data: Buffer.alloc(100) };
  const finish = () => conversions.shift()!({ kind: 'ready', event: converted, headers: null });

  start();
  lane.endpoint = { ...lane.endpoint, apiVersion: 'v2' };
  finish();
  expect(sent).toEqual([]);
  expect(putBack).toEqual([item]);
  expect(budget.bytes).toBe(0);

  start();
  finish();
  expect(sent).toMatchObject([{ endpoint: { apiVersion: 'v2' } }]);
  // On the wire. The budget for payloads counts it.
  expect(budget.bytes).toBe(100);
});
