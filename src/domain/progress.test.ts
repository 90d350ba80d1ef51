import { expect, test } from 'vitest';
import { Progress } from './progress.ts';

function setUp(needsSubjects: 0 | 2) {
  const time = { now: 0 };
  const progress = new Progress({ monotonic: () => time.now }, { needsSubjects });
  const succeed = (...subjects: string[]) => progress.watch(subjects, async () => 1);
  const fail = (...subjects: string[]) =>
    progress.watch(subjects, () => Promise.reject(new Error('locked'))).catch(() => {});
  return { time, progress, succeed, fail };
}

test('calls stall from the first one that no success has followed', async () => {
  const { time, progress, succeed, fail } = setUp(0);
  await succeed();
  time.now = 1_000;
  expect(progress.stalledForMs).toBe(0);
  await fail();
  time.now = 4_000;
  await fail();
  expect(progress.stalledForMs).toBe(3_000);
  await succeed();
  expect(progress.stalledForMs).toBe(0);
});

test('a call without an answer stalls too', () => {
  const { time, progress } = setUp(0);
  void progress.watch([], () => new Promise(() => {}));
  time.now = 5_000;
  expect(progress.stalledForMs).toBe(5_000);
});

test('a single subject that fails is no stall, because the reason may be its own', async () => {
  const { time, progress, succeed, fail } = setUp(2);
  await fail('a');
  await fail('a');
  time.now = 5_000;
  expect(progress.stalledForMs).toBe(0);
  await fail('b');
  expect(progress.stalledForMs).toBe(5_000);
  await succeed('c');
  await fail('a');
  time.now = 9_000;
  expect(progress.stalledForMs).toBe(0);
});

test('failures are forgotten if there is no further call', async () => {
  const { time, progress, fail } = setUp(0);
  await fail();
  time.now = 20_000;
  expect(progress.stalledForMs).toBe(20_000);
  time.now = 31_000;
  expect(progress.stalledForMs).toBe(0);
  await fail();
  time.now = 32_000;
  expect(progress.stalledForMs).toBe(1_000);
});
