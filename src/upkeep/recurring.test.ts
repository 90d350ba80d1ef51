import { expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { Recurring } from './recurring.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The test decides when rounds begin and end. Each round sets the next of these pauses. */
function manual(...pauses: readonly number[]) {
  const timers: { delayMs: number; task: () => void }[] = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(delayMs, task) {
      const timer = { delayMs, task };
      timers.push(timer);
      return () => {
        if (timers.includes(timer)) timers.splice(timers.indexOf(timer), 1);
      };
    },
  };
  const open: (() => void)[] = [];
  let begun = 0;
  class Manual extends Recurring {
    get isStopping(): boolean {
      return this.isStopped;
    }

    protected override async work(): Promise<void> {
      begun += 1;
      await new Promise<void>((resolve) => open.push(resolve));
      this.pauseMs = pauses[begun - 1]!;
    }
  }
  return {
    recurring: new Manual(clock, 5),
    pauses: () => timers.map(({ delayMs }) => delayMs),
    pass: () => timers.shift()?.task(),
    async end() {
      open.shift()?.();
      await turn();
    },
    begun: () => begun,
  };
}

test('runs one round after the other, with the pause that the last round set', async () => {
  const { recurring, pauses, pass, end, begun } = manual(70);
  recurring.start();
  recurring.start();
  expect(pauses()).toEqual([5]);
  pass();
  // No round starts while another one runs.
  recurring.start();
  expect([begun(), pauses()]).toEqual([1, []]);
  await end();
  expect(pauses()).toEqual([70]);
  pass();
  expect(begun()).toBe(2);
});

test('stop waits for the current round, and no round follows', async () => {
  const { recurring, pauses, pass, end } = manual();
  recurring.start();
  pass();
  let hasStopped = false;
  const stopping = recurring.stop().then(() => {
    hasStopped = true;
  });
  await turn();
  expect([recurring.isStopping, hasStopped]).toEqual([true, false]);
  await end();
  await stopping;
  recurring.start();
  expect(pauses()).toEqual([]);
});

test('stop ends a pause', async () => {
  const { recurring, pauses, begun } = manual();
  recurring.start();
  await recurring.stop();
  expect([begun(), pauses()]).toEqual([0, []]);
});
