import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { Alarms } from './alarms.ts';
import type { Lane } from './lane.ts';

/** A clock that stands still until a test moves it. */
class ManualClock implements Clock {
  time = 0;
  /** How far the wall clock is ahead of `time`. */
  aheadMs = 0;
  readonly timers = new Set<{ at: number; task: () => void }>();

  now = (): number => this.time + this.aheadMs;
  monotonic = (): number => this.time;
  after = (delayMs: number, task: () => void): (() => void) => {
    const timer = { at: this.time + delayMs, task };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  };

  moveTo(time: number): void {
    for (;;) {
      const next = [...this.timers].toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > time) break;
      this.time = Math.max(this.time, next.at);
      this.timers.delete(next);
      next.task();
    }
    this.time = time;
  }
}

const lanes = Array.from({ length: 6 }, (_, i) => ({ id: i }) as unknown as Lane);

function setUp() {
  const clock = new ManualClock();
  const rung: [number, Lane][] = [];
  const alarms = new Alarms(clock, (lane) => rung.push([clock.time, lane]));
  return { clock, rung, alarms };
}

describe('alarms', () => {
  it('ring once, at their time, with one timer for all lanes', () => {
    const { clock, rung, alarms } = setUp();
    for (const [i, lane] of lanes.entries()) alarms.set(lane, 100 - i);
    expect(clock.timers.size).toBe(1);
    clock.moveTo(1_000);
    expect(rung.map(([at]) => at)).toEqual([95, 96, 97, 98, 99, 100]);
    expect(clock.timers.size).toBe(0);
  });

  it('an earlier time replaces a later one, a later one does not replace an earlier', () => {
    const { clock, rung, alarms } = setUp();
    alarms.set(lanes[0]!, 50);
    alarms.set(lanes[0]!, 80);
    alarms.set(lanes[0]!, 20);
    clock.moveTo(1_000);
    expect(rung).toEqual([[20, lanes[0]]]);
  });

  it('can be set from within a ring, even for a time that has passed, without a busy loop', () => {
    const clock = new ManualClock();
    let rings = 0;
    const alarms: Alarms = new Alarms(clock, (lane) => {
      rings += 1;
      if (rings < 5) alarms.set(lane, clock.time + 10);
    });
    alarms.set(lanes[0]!, -100);
    clock.moveTo(0);
    expect(rings).toBe(0);
    clock.moveTo(1);
    expect(rings).toBe(1);
    clock.moveTo(100);
    expect(rings).toBe(5);
  });

  it('ring at the right time even if it is further away than the longest timer', () => {
    const { clock, rung, alarms } = setUp();
    const week = 7 * 86_400_000;
    alarms.set(lanes[0]!, week);
    clock.moveTo(week + 60_000);
    expect(rung).toEqual([[week, lanes[0]]]);
  });

  it.each([100_000, -100_000])('ring after the same wait when the clock is set by %i ms', (stepMs) => {
    const { clock, rung, alarms } = setUp();
    alarms.set(lanes[0]!, 50_000);
    clock.moveTo(1_000);
    clock.aheadMs += stepMs;
    alarms.onClockStepped(stepMs);
    alarms.set(lanes[1]!, clock.now() + 10);
    clock.moveTo(100_000);
    expect(rung).toEqual([
      [1_010, lanes[1]],
      [50_000, lanes[0]],
    ]);
  });

  it('do not ring after they were forgotten or stopped', () => {
    const { clock, rung, alarms } = setUp();
    alarms.set(lanes[0]!, 10);
    alarms.set(lanes[1]!, 20);
    alarms.forget(lanes[0]!);
    clock.moveTo(15);
    alarms.stop();
    clock.moveTo(100);
    expect(rung).toEqual([]);
    expect(clock.timers.size).toBe(0);
  });

  it('ring exactly once each, in any order of setting and forgetting', () => {
    const step = fc.record({
      what: fc.constantFrom('set', 'set', 'forget', 'move'),
      which: fc.integer({ min: 0, max: 5 }),
      ms: fc.integer({ min: 1, max: 100 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
        const { clock, rung, alarms } = setUp();
        const model = new Map<Lane, number>();
        for (const { what, which, ms } of steps) {
          const lane = lanes[which]!;
          if (what === 'set') {
            const at = clock.time + ms;
            alarms.set(lane, at);
            model.set(lane, Math.min(model.get(lane) ?? Number.POSITIVE_INFINITY, at));
          } else if (what === 'forget') {
            alarms.forget(lane);
            model.delete(lane);
          } else {
            clock.moveTo(clock.time + ms);
            const due = [...model].filter(([, at]) => at <= clock.time).toSorted((a, b) => a[1] - b[1]);
            for (const [one] of due) model.delete(one);
            const byTime = (entries: [number, Lane][]) =>
              entries.map(([at, one]) => `${at} ${one.id}`).toSorted();
            expect(byTime(rung.splice(0))).toEqual(byTime(due.map(([one, at]) => [at, one])));
          }
        }
      }),
    );
  });
});
