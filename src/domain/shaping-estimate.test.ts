import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveBatch } from './batch.ts';
import { resolveDebounce } from './debounce.ts';
import { countRequests, type PastEvent } from './shaping-estimate.ts';

const eventsAt = (times: readonly number[], key: string | null = null, bytes = 300): PastEvent[] =>
  times.map((at) => ({ at, bytes, key }));
const batch = (config: Parameters<typeof resolveBatch>[0]) => ({
  batch: resolveBatch(config),
  debounce: null,
});
const debounce = (config: Parameters<typeof resolveDebounce>[0]) => ({
  batch: null,
  debounce: resolveDebounce(config),
});

describe('FAN-4: the estimate of requests', () => {
  it('counts one request per event without batch and debounce', () => {
    expect(countRequests(eventsAt([1, 1, 2]), { batch: null, debounce: null })).toBe(3);
    expect(countRequests([], batch({}))).toBe(0);
  });

  it('sends a batch when it is full, when its oldest event has waited, and when the next event does not fit', () => {
    const settings = batch({ max_events: 3, max_wait_ms: 100 });
    expect(countRequests(eventsAt([0, 1, 2, 3]), settings)).toBe(2);
    expect(countRequests(eventsAt([0, 99, 100]), settings)).toBe(2);
    expect(countRequests(eventsAt([0, 90, 180]), settings)).toBe(2);
    expect(countRequests(eventsAt([0, 0, 0], null, 700), batch({ max_bytes: 1024 }))).toBe(3);
    expect(countRequests(eventsAt([0, 0, 0], null, 400), batch({ max_bytes: 1024 }))).toBe(2);
    expect(countRequests(eventsAt([0, 0], null, 5_000), batch({ max_bytes: 1024 }))).toBe(2);
  });

  it('sends the last event of a key after its window, and holds a steady stream back for max_wait_ms only', () => {
    const settings = debounce({ key: 'data.id', window_ms: 10, max_wait_ms: 25 });
    expect(countRequests(eventsAt([0, 9, 18], 'a'), settings)).toBe(1);
    expect(countRequests(eventsAt([0, 10], 'a'), settings)).toBe(2);
    expect(countRequests(eventsAt([0, 8, 16, 24, 25, 26], 'a'), settings)).toBe(2);
    expect(
      countRequests([...eventsAt([0, 1], 'a'), ...eventsAt([2], 'b'), ...eventsAt([3, 4])], settings),
    ).toBe(4);
  });

  it('sends the first event of a key, and the next one after the window', () => {
    const settings = debounce({ key: 'data.id', window_ms: 10, mode: 'first', max_wait_ms: 10 });
    expect(countRequests(eventsAt([0, 9, 10, 19, 20], 'a'), settings)).toBe(3);
  });

  it('never exceeds the number of events, and never falls below what the limits allow', () => {
    const times = fc.array(fc.nat(5_000), { maxLength: 200 }).map((list) => list.sort((a, b) => a - b));
    const key = fc.constantFrom('a', 'b', null);
    fc.assert(
      fc.property(
        times,
        key,
        fc.integer({ min: 1, max: 20 }),
        fc.nat(500),
        (list, name, maxEvents, waitMs) => {
          const events = eventsAt(list, name);
          const batches = countRequests(events, batch({ max_events: maxEvents, max_wait_ms: waitMs }));
          expect(batches).toBeLessThanOrEqual(events.length);
          expect(batches).toBeGreaterThanOrEqual(Math.ceil(events.length / maxEvents));
          for (const mode of ['first', 'last'] as const) {
            const requests = countRequests(events, debounce({ key: 'data.id', window_ms: waitMs + 1, mode }));
            expect(requests).toBeLessThanOrEqual(events.length);
            expect(requests).toBeGreaterThanOrEqual(events.length === 0 ? 0 : 1);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
