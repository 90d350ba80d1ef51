import { expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { FactsPoller } from './facts-poller.ts';

const FACTS = { now: 1_800_000_000_000, endpointVersion: 7, lastSeq: 1 };

test('reads the facts immediately and at every interval, through failures, until it is stopped', async () => {
  let monotonic = 0;
  const timers: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    monotonic: () => monotonic,
    after: (_delayMs, task) => {
      timers.push(task);
      return () => void timers.splice(timers.indexOf(task), 1);
    },
  };
  const happened: unknown[] = [];
  let isUnavailable = false;
  const poller = new FactsPoller({
    store: {
      readFacts: async () => {
        monotonic += 20;
        if (isUnavailable) throw new Error('unavailable');
        return FACTS;
      },
    },
    clock,
    everyMs: 300,
    listener: {
      onFacts: ({ endpointVersion }, roundTripMs) => happened.push([endpointVersion, roundTripMs]),
    },
    onProblem: (what) => happened.push(what),
  });
  const next = async (): Promise<void> => {
    timers.shift()!();
    await new Promise(setImmediate);
  };
  await poller.start();
  isUnavailable = true;
  await next();
  isUnavailable = false;
  await next();
  await poller.stop();
  expect(timers).toEqual([]);
  expect(happened).toEqual([[7, 20], 'read the version of the endpoints', [7, 20]]);
});
