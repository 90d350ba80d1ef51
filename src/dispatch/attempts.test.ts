import { describe, expect, it, vi } from 'vitest';
import { anEndpoint, anEvent } from '../../test/support/attempts.ts';
import { AdaptiveLimits } from '../domain/adaptive-limits.ts';
import type { DebounceSettings } from '../domain/debounce.ts';
import type { EventContent } from '../domain/event.ts';
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
      needsConversion: () => true,
      convert: (_request: unknown, done: (result: ConversionResult) => void) => conversions.push(done),
    },
    sender: { send: (request: AttemptRequest) => sent.push(request) },
    scheduler: { release: () => {} },
    laneKeeper: { onAttemptEnded: () => {} },
    budget,
    recentStarts: { add: () => {} },
    debounce: { isDeciding: () => false },
  } as unknown as AttemptsOptions);
  const putBack: LaneItem[] = [];
  const lane = {
    endpoint: anEndpoint('https://example.com/', { apiVersion: 'v1' }),
    isActive: true,
    breaker: { allowsTraffic: true },
    holdUntil: 0,
    tryStart: () => 0,
    adaptive: new AdaptiveLimits(),
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

describe('FAN-4: a delivery of an endpoint that debounces', () => {
  const debounce: DebounceSettings = { key: 'data.order', mode: 'last', windowMs: 1_000, maxWaitMs: 1_000 };

  function newAttempts(settings: DebounceSettings | null) {
    let monotonic = 0;
    let isDeciding = false;
    let isExpunged = false;
    const sent: AttemptRequest[] = [];
    const putBack: LaneItem[] = [];
    const loads: (() => void)[] = [];
    const event = anEvent();
    const attempts = new Attempts({
      clock: { now: () => 1_000, monotonic: () => monotonic },
      ownership: { maySend: () => true },
      payloads: {
        isExpunged: () => isExpunged,
        load: (_: unknown, done: (loaded: EventContent) => void) => loads.push(() => done(event)),
      },
      converter: null,
      sender: { send: (request: AttemptRequest) => sent.push(request) },
      scheduler: { release: () => {} },
      laneKeeper: { onAttemptEnded: () => {} },
      budget: { bytes: 0, isOutOfBytes: false },
      recentStarts: { add: () => {} },
      debounce: {
        isDeciding: () => isDeciding,
        decide: async () => ({ kind: 'send', until: 0, debounced: 3, askedAt: monotonic }),
      },
    } as unknown as AttemptsOptions);
    const lane = {
      endpoint: anEndpoint('https://example.com/', { debounce: settings }),
      isActive: true,
      breaker: { allowsTraffic: true },
      holdUntil: 0,
      tryStart: () => 0,
      adaptive: new AdaptiveLimits(),
      holdPayload: () => {},
      putBack: (item: LaneItem) => putBack.push(item),
    } as unknown as Lane;
    const delivery = { id: newEventId(1), attempts: 0, agesFrom: 1_000, dueAt: null, trigger: 'auto' };
    const item = { delivery, event: null, crashes: 0, notBefore: 0 } as Partial<LaneItem> as LaneItem;
    return {
      sent,
      putBack,
      start: () => attempts.start(lane, item),
      setDeciding: (is: boolean) => {
        isDeciding = is;
      },
      expunge: () => {
        isExpunged = true;
      },
      /** Lets the payload arrive this long after the decision. */
      async finishLoad(afterMs: number) {
        await vi.waitFor(() => expect(loads).toHaveLength(1));
        monotonic += afterMs;
        loads.shift()!();
      },
    };
  }

  it('is asked about again if its payload arrives long after the decision to send it', async () => {
    const { sent, putBack, start, finishLoad } = newAttempts(debounce);
    start();
    await finishLoad(2_500);
    expect(sent).toEqual([]);
    expect(putBack).toHaveLength(1);
    start();
    await finishLoad(1_500);
    expect(sent).toMatchObject([{ debounced: 3 }]);
  });

  it('may no longer be sent when its payload was expunged while the request was prepared', async () => {
    const { sent, start, finishLoad, expunge } = newAttempts(null);
    start();
    await finishLoad(0);
    expect(sent[0]!.maySend()).toBe(true);
    expunge();
    expect(sent[0]!.maySend()).toBe(false);
  });

  it('is not sent while a decision runs that began before debounce was switched off', async () => {
    const { sent, putBack, start, finishLoad, setDeciding } = newAttempts(null);
    setDeciding(true);
    start();
    expect(putBack).toHaveLength(1);
    setDeciding(false);
    start();
    await finishLoad(0);
    expect(sent).toHaveLength(1);
  });
});
