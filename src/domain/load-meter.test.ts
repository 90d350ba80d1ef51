import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LoadMeter } from './load-meter.ts';

/** Returns when a task that is due at `dueAt` runs. */
type Schedule = (dueAt: number) => number;

const onTime: Schedule = (dueAt) => dueAt;

/** A process that runs for `runMs` and is then stopped for `stoppedMs`, again and again. */
const stoppedAgainAndAgain =
  (runMs: number, stoppedMs: number, phaseMs = 0): Schedule =>
  (dueAt) => {
    const inRound = (dueAt + phaseMs) % (runMs + stoppedMs);
    return inRound < runMs ? dueAt : dueAt - inRound + runMs + stoppedMs;
  };

/** Runs a meter for this long, and returns the delays that it reports every 100 ms. */
function measure(schedule: Schedule, forMs: number): number[] {
  let now = 0;
  let next: { readonly dueAt: number; readonly task: () => void } | null = null;
  const clock = {
    now: () => now,
    monotonic: () => now,
    after(ms: number, task: () => void) {
      next = { dueAt: now + ms, task };
      return () => {};
    },
  };
  const reported: number[] = [];
  const meter = new LoadMeter({ clock, onSample: ({ loopDelayMs }) => reported.push(loopDelayMs) });
  meter.start();
  meter.use();
  while (now < forMs) {
    const { dueAt, task } = next!;
    now = schedule(dueAt);
    task();
    meter.use();
  }
  return reported;
}

/** The default of POSTHORN_SHED_LOOP_DELAY_MS. */
const LIMIT_MS = 250;

describe('ACC-8: how late the timers of a process fire', () => {
  it('is more than 250 ms while the process is stopped for 300 ms at a time, however long it runs in between', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 200, noNaN: true }),
        fc.double({ min: 0, max: 500, noNaN: true }),
        (runMs, phaseMs) => {
          const delays = measure(stoppedAgainAndAgain(runMs, 300, phaseMs), 20_000);
          const settled = delays.slice(Math.ceil(delays.length / 4));
          for (const delayMs of settled) expect(delayMs).toBeGreaterThan(LIMIT_MS);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('is reported within two seconds of such stops', () => {
    const delays = measure(stoppedAgainAndAgain(50, 300), 2_000);
    expect(delays.at(-1)).toBeGreaterThan(LIMIT_MS);
  });

  it('stays low while the process is stopped rarely, or for a short time', () => {
    for (const schedule of [
      onTime,
      stoppedAgainAndAgain(700, 300),
      stoppedAgainAndAgain(20, 100),
      stoppedAgainAndAgain(10_000, 5_000),
    ])
      expect(Math.max(...measure(schedule, 30_000))).toBeLessThan(LIMIT_MS / 2);
  });

  it('falls within two seconds when the process runs again', () => {
    const blocked = stoppedAgainAndAgain(50, 300);
    const schedule: Schedule = (dueAt) => (dueAt < 10_000 ? blocked(dueAt) : dueAt);
    expect(measure(schedule, 9_900).at(-1)).toBeGreaterThan(LIMIT_MS);
    expect(measure(schedule, 12_400).at(-1)).toBe(0);
  });
});
