import { expect, test } from 'vitest';
import { Gate } from './gate.ts';

test('runs so many at once, lets so many wait, and refuses the rest', async () => {
  const gate = new Gate({ maxRunning: 2, maxWaiting: 1 });
  const finish: (() => void)[] = [];
  const started: number[] = [];
  const results = [0, 1, 2, 3].map((n) =>
    gate.run(async () => {
      started.push(n);
      await new Promise<void>((resolve) => finish.push(resolve));
      return n;
    }),
  );
  expect(started).toEqual([0, 1]);
  expect(await results[3]).toBeNull();
  finish.shift()!();
  expect(await results[0]).toBe(0);
  expect(started).toEqual([0, 1, 2]);
  for (const done of finish.splice(0)) done();
  expect(await Promise.all(results)).toEqual([0, 1, 2, null]);
  expect(await gate.run(async () => 'free again')).toBe('free again');
});

test('a call that fails frees its place', async () => {
  const gate = new Gate({ maxRunning: 1, maxWaiting: 0 });
  await expect(gate.run(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await gate.run(async () => 1)).toBe(1);
});
