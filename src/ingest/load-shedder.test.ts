import { describe, expect, it } from 'vitest';
import { NO_LOAD, type ProcessLoad } from '../domain/load-meter.ts';
import { LoadShedder } from './load-shedder.ts';

const LIMITS = { maxLoopDelayMs: 200, maxCommitMs: 1_000 };

interface Load {
  delayMs?: number;
  commitMs?: number;
  delivery?: ProcessLoad;
}

/** A clock whose timers fire `delayMs` late. */
function newShedder(limits = LIMITS) {
  let monotonic = 0;
  let deliveryLoad = NO_LOAD;
  const timers: { at: number; task: () => void }[] = [];
  const clock = {
    now: () => monotonic,
    monotonic: () => monotonic,
    after(ms: number, task: () => void) {
      const timer = { at: monotonic + ms, task };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
  };
  const shedder = new LoadShedder({ clock, ...limits, deliveryLoad: () => deliveryLoad });
  shedder.start();
  expect(timers).toHaveLength(0);
  return {
    shedder,
    /** Takes this many samples: a sample ends with the first timer that fires after 100 ms. */
    sample(count: number, { delayMs = 0, commitMs, delivery = NO_LOAD }: Load = {}) {
      deliveryLoad = delivery;
      for (let n = 0; n < count; n += 1) {
        if (timers.length === 0) shedder.admit('t');
        if (commitMs !== undefined) shedder.recordCommit(commitMs);
        for (const startedAt = monotonic; monotonic < startedAt + 100; ) {
          const { at, task } = timers.shift()!;
          monotonic = at + delayMs;
          task();
        }
      }
      return shedder.share;
    },
    admitted: (of: number, tenant = 't') =>
      Array.from({ length: of }, () => shedder.admit(tenant)).filter(Boolean).length,
    /** Lets time pass without a sample. */
    wait(ms: number) {
      monotonic += ms;
    },
    timers,
  };
}

describe('ACC-8: intake while the process or the database is the limit', () => {
  it('admits everything while both signals are low, and after a single pause or slow commit', () => {
    const { sample, admitted } = newShedder();
    sample(20, { delayMs: 50, commitMs: 200 });
    sample(2, { delayMs: 5_000, commitMs: 9_000 });
    sample(20, { commitMs: 20 });
    expect(admitted(1_000)).toBe(1_000);
  });

  it.each([
    ['the event loop is late', { delayMs: 300 }, 'event_loop'],
    ['commits are slow', { commitMs: 1_500 }, 'commits'],
  ] as const)('sheds more and more while %s, but never everything', (_, load, reason) => {
    const { shedder, sample, admitted } = newShedder();
    expect(sample(reason === 'commits' ? 2 : 3, load)).toBe(1);
    expect(sample(1, load)).toBeCloseTo(0.7);
    const most = admitted(1_000);
    expect(most).toBeGreaterThanOrEqual(699);
    expect(most).toBeLessThanOrEqual(702);
    expect(shedder.retryAfterSeconds).toBe(2);
    expect(sample(50, load)).toBe(0.05);
    const lowest = admitted(1_000);
    expect(lowest).toBeGreaterThanOrEqual(49);
    expect(lowest).toBeLessThanOrEqual(51);
    expect(shedder.retryAfterSeconds).toBe(5);
    expect(shedder.shed[reason]).toBeGreaterThan(1_200);
  });

  it.each([
    ['the event loop of a process that delivers is late', { loopDelayMs: 300, commitMs: 0 }],
    ['results are recorded slowly', { loopDelayMs: 0, commitMs: 1_500 }],
  ])('sheds while %s, though this process is not busy', (_, delivery) => {
    const { shedder, sample, admitted } = newShedder();
    expect(sample(8, { delivery })).toBeLessThan(0.1);
    admitted(1_000);
    expect(shedder.shed.delivery).toBeGreaterThan(900);
    // Half of the limits and less.
    expect(sample(20, { delivery: { loopDelayMs: 90, commitMs: 400 } })).toBe(1);
  });

  it('raises the share slowly between half of the limit and the limit, and quickly below', () => {
    const { sample, admitted } = newShedder();
    sample(40, { delayMs: 300 });
    // The signal follows after a second.
    sample(6, { delayMs: 150 });
    const share = sample(1, { delayMs: 150 });
    expect(share).toBeLessThan(0.1);
    expect(sample(10, { delayMs: 150 })).toBeCloseTo(share + 0.05, 5);
    expect(sample(200, { delayMs: 150 })).toBe(1);
    sample(40, { delayMs: 300 });
    expect(sample(32, { delayMs: 10 })).toBe(1);
    expect(admitted(100)).toBe(100);
  });

  it('notices commits that follow each other and take seconds each', () => {
    const { shedder, sample } = newShedder();
    // A commit every 1.6 seconds.
    for (let commit = 0; commit < 5; commit += 1) {
      shedder.recordCommit(1_600);
      sample(16);
    }
    expect(shedder.share).toBeLessThan(0.5);
  });

  it('rejects events of a tenant that floods, and none of a tenant that publishes little', () => {
    const { sample, admitted, wait } = newShedder();
    sample(40, { delayMs: 300 });
    const second = () => ({ flood: admitted(2_000, 'flood'), quiet: admitted(10, 'quiet') });
    second();
    wait(1_000);
    expect(second()).toEqual({ flood: 51, quiet: 10 });
  });

  it('forgets commits when there are no new ones', () => {
    const { sample } = newShedder();
    sample(10, { commitMs: 3_000 });
    expect(sample(400)).toBe(1);
  });

  it('measures nothing while nobody publishes', () => {
    const { shedder, sample, timers } = newShedder();
    sample(99);
    expect(timers).toHaveLength(1);
    sample(1);
    expect(timers).toHaveLength(0);
    shedder.admit('t');
    expect(timers).toHaveLength(1);
  });

  it('measures until everything is admitted again, also while nobody publishes', () => {
    const { sample, timers } = newShedder();
    sample(200, { delayMs: 300 });
    expect(timers).toHaveLength(1);
    while (sample(1) < 1) expect(timers).toHaveLength(1);
    expect(timers).toHaveLength(0);
  });

  it('can be switched off, and stops', () => {
    const { shedder, sample, timers } = newShedder({ maxLoopDelayMs: 0, maxCommitMs: 0 });
    expect(sample(20, { delayMs: 9_000, commitMs: 9_000 })).toBe(1);
    shedder.stop();
    expect(timers).toHaveLength(0);
  });
});
