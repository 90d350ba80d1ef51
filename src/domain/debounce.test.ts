import { describe, expect, it } from 'vitest';
import { DebounceKeys, debounceWindowOf } from './debounce.ts';

const keyOf = (order: unknown): string =>
  new DebounceKeys(Buffer.from(JSON.stringify({ order }))).keyOf({ key: 'data.order' })!;

describe('FAN-4: when the events of a debounce key are sent', () => {
  const settings = { windowMs: 4_000, maxWaitMs: 40_000 };

  it('spreads 10,000 keys whose events arrive at once evenly over a quarter of the window', () => {
    const waits = Array.from({ length: 10_000 }, (_, n) => debounceWindowOf(settings, keyOf(n)));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(4_000);
    expect(Math.max(...waits)).toBeLessThan(5_000);
    const perTenth = Map.groupBy(waits, (ms) => Math.floor(ms / 100));
    expect(perTenth.size).toBe(10);
    for (const { length } of perTenth.values()) {
      expect(length).toBeGreaterThan(850);
      expect(length).toBeLessThan(1_150);
    }
  });

  it('is the same for every event of a key, and never later than max_wait_ms', () => {
    expect(debounceWindowOf(settings, keyOf('a'))).toBe(debounceWindowOf(settings, keyOf('a')));
    for (let n = 0; n < 100; n += 1)
      expect(debounceWindowOf({ windowMs: 4_000, maxWaitMs: 4_000 }, keyOf(n))).toBe(4_000);
  });

  it('tells long numbers apart, also those that JavaScript rounds to the same value', () => {
    const keyOf = (data: string) => new DebounceKeys(Buffer.from(data)).keyOf({ key: 'data.id' });
    expect(keyOf('{"id":9007199254740993}')).not.toBe(keyOf('{"id":9007199254740992}'));
    expect(keyOf('{"id":[12345678901234567891]}')).not.toBe(keyOf('{"id":[12345678901234567890]}'));
    expect(keyOf('{"id":9007199254740993}')).toBe(keyOf('{"other":1,"id":9007199254740993}'));
    expect(keyOf('{"id":42,"x":9007199254740993}')).toBe(keyOf('{"id":42}'));
    expect(keyOf('{"id":"9007199254740993"}')).not.toBe(keyOf('{"id":9007199254740993}'));
  });
});
