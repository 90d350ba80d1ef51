import { describe, expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { ArchiveStoppedError, ExportPace, type PaceOptions } from './pace.ts';

/** A clock that stands still. `work` moves it, and a rest moves it to its end. */
class TestClock implements Clock {
  time = 0;
  timers = 0;
  /** False: rests never end by themselves. */
  endsRests = true;

  now = (): number => this.time;
  monotonic = (): number => this.time;
  after = (delayMs: number, task: () => void): (() => void) => {
    this.timers += 1;
    if (this.endsRests)
      queueMicrotask(() => {
        this.time += delayMs;
        this.timers -= 1;
        task();
      });
    return () => {
      this.timers -= 1;
    };
  };
}

async function startPace(options: Partial<PaceOptions> = {}) {
  const clock = new TestClock();
  const rests: number[] = [];
  const pace = new ExportPace({ maxBusy: 0.25, clock, onRest: (ms) => rests.push(ms), ...options });
  /** Works for `workMs`, then calls `rest`. */
  const work = (workMs: number): Promise<void> => {
    clock.time += workMs;
    return pace.rest();
  };
  // The first call begins the work.
  await pace.rest();
  return { clock, rests, pace, work };
}

describe('LIF-2: the pace of an export', () => {
  test('works for at most its share of the time', async () => {
    const { clock, work } = await startPace();
    let workedMs = 0;
    for (const workMs of [100, 60, 250, 1000, 80]) {
      await work(workMs);
      workedMs += workMs;
      expect(workedMs / clock.time).toBeCloseTo(0.25);
    }
  });

  test('adds short work up before it rests', async () => {
    const { rests, work } = await startPace();
    for (let n = 0; n < 4; n += 1) await work(20);
    expect(rests).toEqual([180]);
  });

  test('does not rest for long after a long wait, such as an upload', async () => {
    const { rests, work } = await startPace();
    await work(3_600_000);
    expect(rests).toEqual([10_000]);
  });

  test('never rests at full speed', async () => {
    const { rests, work } = await startPace({
      maxBusy: 1,
      isBehind: () => Promise.reject(new Error('asked')),
    });
    for (let n = 0; n < 3; n += 1) await work(5_000);
    expect(rests).toEqual([]);
  });

  test('does not rest while the archive is behind, and asks for that once a minute', async () => {
    const answers = [true, false];
    let asked = 0;
    const changes: boolean[] = [];
    const { rests, work } = await startPace({
      isBehind: async () => answers[asked++]!,
      onBehindChanged: (isBehind) => changes.push(isBehind),
    });
    for (let n = 0; n < 6; n += 1) await work(10_000);
    expect({ rests, asked, changes }).toEqual({ rests: [], asked: 1, changes: [true] });
    await work(10_000);
    expect({ rests, asked, changes }).toEqual({ rests: [10_000], asked: 2, changes: [true, false] });
  });

  test('stop ends a rest at once, and all later ones', async () => {
    const { clock, rests, pace, work } = await startPace();
    clock.endsRests = false;
    const resting = work(100);
    await expect.poll(() => rests).toEqual([300]);
    pace.stop();
    await expect(resting).rejects.toThrow(ArchiveStoppedError);
    expect(clock).toMatchObject({ time: 100, timers: 0 });
    await expect(pace.rest()).rejects.toThrow(ArchiveStoppedError);
    expect(rests).toHaveLength(1);
  });

  test('stop while `isBehind` runs prevents the rest', async () => {
    let pace: ExportPace | null = null;
    const started = await startPace({
      isBehind: async () => {
        pace!.stop();
        return false;
      },
    });
    pace = started.pace;
    started.clock.endsRests = false;
    await expect(started.work(100)).rejects.toThrow(ArchiveStoppedError);
    expect(started.clock.timers).toBe(0);
  });
});
