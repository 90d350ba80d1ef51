import { expect, test } from 'vitest';
import type { Clock } from '../domain/clock.ts';
import { FactsPoller } from './facts-poller.ts';

const FACTS = { now: 1_800_000_000_000, endpointVersion: 7, lastSeq: 1, outboxSeq: 1 };

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

test('reads a third as often while no event is accepted', async () => {
  let monotonic = 0;
  let lastSeq = 1;
  let isUnavailable = false;
  let pauseMs = 0;
  let read = (): void => {};
  const poller = new FactsPoller({
    store: {
      readFacts: async () => {
        if (isUnavailable) throw new Error('unavailable');
        return { ...FACTS, lastSeq };
      },
    },
    clock: {
      now: () => 0,
      monotonic: () => monotonic,
      after: (delayMs, task) => {
        pauseMs = delayMs;
        read = task;
        return () => {};
      },
    },
    everyMs: 300,
    listener: { onFacts: () => {} },
    onProblem: () => {},
  });
  const pauseAfter = async (ms: number): Promise<number> => {
    monotonic += ms;
    read();
    await new Promise(setImmediate);
    return pauseMs;
  };
  await poller.start();
  expect(await pauseAfter(9_000)).toBe(300);
  expect(await pauseAfter(2_000)).toBe(900);
  isUnavailable = true;
  expect(await pauseAfter(900)).toBe(300);
  isUnavailable = false;
  expect(await pauseAfter(300)).toBe(900);
  lastSeq = 2;
  expect(await pauseAfter(900)).toBe(300);
  await poller.stop();
});
