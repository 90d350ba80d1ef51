import { expect, test } from 'vitest';
import { CommitPace } from './commit-pace.ts';

function newPace() {
  const timers = new Map<() => void, number>();
  let now = 0;
  const clock = {
    monotonic: () => now,
    after(ms: number, task: () => void) {
      timers.set(task, now + ms);
      return () => void timers.delete(task);
    },
  };
  const advance = (ms: number): void => {
    now += ms;
    for (const [task, at] of timers) {
      if (at > now) continue;
      timers.delete(task);
      task();
    }
  };
  return { pace: new CommitPace({ clock, factor: 3 }), advance, timers };
}

test('a pause follows each turn while others publish', () => {
  const { pace, advance, timers } = newPace();
  const end = pace.tryBegin()!;
  expect(pace.tryBegin()).toBeNull();
  advance(20);
  pace.onSharedBatch();
  end();
  advance(59);
  expect(pace.tryBegin()).toBeNull();
  advance(1);
  pace.tryBegin()!();
  expect(timers.size).toBe(0);
});

test('without others the pause is the least one', () => {
  const { pace, advance } = newPace();
  const end = pace.tryBegin()!;
  advance(20);
  end(1);
  advance(19);
  expect(pace.tryBegin()).toBeNull();
  advance(1);
  expect(pace.tryBegin()).not.toBeNull();
});

test('a pause takes at most a second', async () => {
  const { pace, advance } = newPace();
  const end = pace.tryBegin()!;
  advance(1_900);
  pace.onSharedBatch();
  end();
  const isFree = pace.waitUntilFree();
  advance(1_000);
  await isFree;
  expect(pace.tryBegin()).not.toBeNull();
});
