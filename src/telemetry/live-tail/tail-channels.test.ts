import { expect, test } from 'vitest';
import { newId } from '../../domain/ids.ts';
import { MemoryMessageBus, MemoryMessageHub } from '../../memory/memory-message-bus.ts';
import { TailChannels, type TailTransport } from './tail-channels.ts';
import { EVERYTHING, encodeInterest } from './wire.ts';

type Handler = (message: string) => void;

/** Processes that reach each other by NOTIFY and, unless they are cut off, through a bus. */
function newWorld() {
  const hub = new MemoryMessageHub();
  const elsewhere = new MemoryMessageHub();
  const handlers = { tail: new Set<Handler>(), tailInterest: new Set<Handler>() };
  const notified: string[] = [];
  let now = 0;
  const notifier: TailTransport = {
    publish: (channel, messages) => {
      if (channel === 'tail') notified.push(...messages);
      for (const message of messages)
        for (const handler of handlers[channel]) queueMicrotask(() => handler(message));
    },
    subscribe: (channel, handler) => {
      handlers[channel].add(handler);
      return () => void handlers[channel].delete(handler);
    },
    flush: async () => {},
  };
  return {
    hub,
    notified,
    pass: (ms: number) => {
      now += ms;
    },
    settle: () => new Promise((resolve) => setImmediate(resolve)),
    process(name: string, isOnBus = true) {
      const channels = new TailChannels({
        notifier,
        bus: new MemoryMessageBus(newId(1_800_000_000_000), isOnBus ? hub : elsewhere),
        clock: { monotonic: () => now },
        processName: name,
        interestMs: 15_000,
        onProblem: () => {},
      });
      channels.subscribe('tailInterest', () => {});
      const shown: string[] = [];
      return {
        channels,
        shown,
        watch: () => {
          const end = channels.subscribe('tail', (message) => shown.push(message));
          channels.publish('tailInterest', [encodeInterest({ from: name, filters: [EVERYTHING] })]);
          return end;
        },
        announce: () =>
          channels.publish('tailInterest', [encodeInterest({ from: name, filters: [EVERYTHING] })]),
        leave: () => channels.publish('tailInterest', [encodeInterest({ from: name, filters: [] })]),
      };
    },
  };
}

test('messages go through the bus, once, if it reaches every process that watches', async () => {
  const world = newWorld();
  const [sender, one, two] = [world.process('sender'), world.process('one'), world.process('two')];
  for (const each of [one, two]) each.watch();
  await world.settle();
  sender.channels.publish('tail', ['hello']);
  await world.settle();
  expect([one.shown, two.shown, world.notified]).toEqual([['hello'], ['hello'], []]);
  expect(sender.channels.fallBacks).toBe(0);
});

test('messages go by NOTIFY, once, if a process that watches is not on the bus, until it leaves or expires', async () => {
  const world = newWorld();
  const [sender, one, apart] = [world.process('sender'), world.process('one'), world.process('apart', false)];
  for (const each of [one, apart]) each.watch();
  await world.settle();
  sender.channels.publish('tail', ['a']);
  await world.settle();
  expect([one.shown, apart.shown, world.notified]).toEqual([['a'], ['a'], ['a']]);
  apart.leave();
  await world.settle();
  sender.channels.publish('tail', ['b']);
  await world.settle();
  expect([one.shown, world.notified]).toEqual([['a', 'b'], ['a']]);
  apart.announce();
  await world.settle();
  world.pass(14_000);
  one.announce();
  await world.settle();
  world.pass(2_000);
  sender.channels.publish('tail', ['c']);
  await world.settle();
  expect([one.shown, world.notified]).toEqual([['a', 'b', 'c'], ['a']]);
});

test('messages go by NOTIFY while the bus is unavailable', async () => {
  const world = newWorld();
  const [sender, one] = [world.process('sender'), world.process('one')];
  one.watch();
  await world.settle();
  world.hub.isUp = false;
  sender.channels.publish('tail', ['a']);
  await world.settle();
  expect([one.shown, world.notified, sender.channels.fallBacks]).toEqual([['a'], ['a'], 1]);
  world.hub.restart();
  sender.channels.publish('tail', ['b']);
  await world.settle();
  expect([one.shown, world.notified]).toEqual([['a', 'b'], ['a']]);
});

test('if the bus reaches fewer processes than watch, the next messages go by NOTIFY until they announce themselves', async () => {
  const world = newWorld();
  const [sender, one] = [world.process('sender'), world.process('one')];
  const end = one.watch();
  await world.settle();
  end();
  sender.channels.publish('tail', ['lost']);
  await world.settle();
  sender.channels.publish('tail', ['a']);
  await world.settle();
  expect(world.notified).toEqual(['a']);
  one.watch();
  await world.settle();
  sender.channels.publish('tail', ['b']);
  await world.settle();
  expect([one.shown, world.notified]).toEqual([['b'], ['a']]);
});
