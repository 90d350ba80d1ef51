import { expect, test } from 'vitest';
import { Gate } from './gate.ts';

test('runs up to maxRunning calls at once, lets maxWaiting more wait, and refuses the rest', async () => {
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

/** A call that runs until `finish`. */
function startCall(gate: Gate, group: string, signal?: AbortSignal) {
  let finish = () => {};
  let hasStarted = false;
  const result = gate.run(
    () => {
      hasStarted = true;
      return new Promise<string>((resolve) => {
        finish = () => resolve(group);
      });
    },
    { group, ...(signal && { signal }) },
  );
  return { result, finish: () => finish(), hasStarted: () => hasStarted };
}

test('one group neither takes the places of another nor makes it wait behind its own calls', async () => {
  const gate = new Gate({ maxRunning: 2, maxWaiting: 10, perGroup: { maxRunning: 1, maxWaiting: 2 } });
  const busy = [1, 2, 3, 4].map(() => startCall(gate, 'busy'));
  expect(await busy[3]!.result).toBeNull();
  const other = startCall(gate, 'other');
  expect(other.hasStarted()).toBe(true);
  expect(busy.map((call) => call.hasStarted())).toEqual([true, false, false, false]);
  other.finish();
  expect(await other.result).toBe('other');
  expect(busy[1]!.hasStarted()).toBe(false);
  for (const call of busy.slice(0, 3)) {
    call.finish();
    expect(await call.result).toBe('busy');
  }
});

test('a call whose signal aborts while it waits leaves the queue and never runs', async () => {
  const gate = new Gate({ maxRunning: 1, maxWaiting: 1 });
  const first = startCall(gate, 'a');
  const client = new AbortController();
  const aborted = startCall(gate, 'a', client.signal);
  client.abort();
  expect(await aborted.result).toBeNull();
  const next = startCall(gate, 'a');
  first.finish();
  await first.result;
  expect([aborted.hasStarted(), next.hasStarted()]).toEqual([false, true]);
  next.finish();
  expect(await next.result).toBe('a');
});
