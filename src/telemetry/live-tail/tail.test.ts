import { describe, expect, test, vi } from 'vitest';
import { newEventId, newId, publicId, type Uuid } from '../../domain/ids.ts';
import type { Notifier } from '../../ports/notifier.ts';
import type { TailFilter } from './message.ts';
import { LiveTail } from './tail.ts';
import { EVERYTHING, encodeBatch, encodeInterest } from './wire.ts';

const NOW = 1_800_000_000_000;
const ONE = newId(NOW);

/** Several processes that notify each other, on virtual time. */
type Handler = (payload: string) => void;

function newWorld() {
  let now = 0;
  const timers: { at: number; task: () => void }[] = [];
  const handlers = { tail: new Set<Handler>(), tailInterest: new Set<Handler>() };
  const sent: string[] = [];
  const notifier = {
    publish: (channel: keyof typeof handlers, payloads: readonly string[]) => {
      if (channel === 'tail') sent.push(...payloads);
      for (const payload of payloads)
        for (const handler of handlers[channel]) queueMicrotask(() => handler(payload));
    },
    subscribe: (channel: keyof typeof handlers, handler: Handler) => {
      handlers[channel].add(handler);
      return () => void handlers[channel].delete(handler);
    },
    flush: async () => {
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    },
  };
  const onProblem = vi.fn();
  return {
    sent,
    notifier,
    handlers,
    onProblem,
    /** Advances the time and runs the timers that are due. */
    async pass(ms: number): Promise<void> {
      const end = now + ms;
      for (;;) {
        // A message arrives some turns of the event loop after it was sent.
        for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
        const next = timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        timers.splice(timers.indexOf(next), 1);
        now = next.at;
        next.task();
      }
      now = end;
    },
    process(name: string, messagesPerSecond = 200): LiveTail {
      const clock = {
        now: () => NOW + now,
        monotonic: () => now,
        after: (delayMs: number, task: () => void) => {
          const timer = { at: now + delayMs, task };
          timers.push(timer);
          return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1));
        },
      };
      const tail = new LiveTail({
        clock,
        processName: name,
        messagesPerSecond,
        announceMs: 5000,
        notifier: notifier as unknown as Notifier,
        onProblem,
      });
      void tail.start();
      return tail;
    },
  };
}

function newWatcher(filter: Partial<TailFilter> = {}) {
  const shown: [string, Record<string, unknown>][] = [];
  return {
    filter: { ...EVERYTHING, ...filter },
    shown,
    show(text: string) {
      for (const [, event, data] of text.matchAll(/event: (.*)\ndata: (.*)\n\n/g))
        shown.push([event!, JSON.parse(data!)]);
    },
  };
}

const event = (tenant: string, type = 'a.b') => ({
  id: newEventId(NOW),
  type,
  tenant,
  createdAt: NOW,
  deliveries: 1,
});
const settled = (endpointId: Uuid, tenant: string) => ({
  deliveryId: newEventId(NOW),
  endpointId,
  tenant,
  attemptsBefore: 0,
  verdict: { kind: 'delivered' } as const,
  attempt: {
    outcome: {
      startedAt: NOW,
      durationMs: 5,
      timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null },
      statusCode: 200,
      error: null,
      url: '',
      requestHeaders: {},
      responseHeaders: null,
      responseBody: null,
      responseTruncated: false,
      retryAfterMs: null,
    },
    trigger: 'auto' as const,
    eventType: 'a.b',
  },
});

describe('the live tail of several processes', () => {
  test('sends nothing before the first watcher joins and after the last one leaves', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there')];
    expect([here.isWatched, there.isWatched]).toEqual([false, false]);
    const watcher = newWatcher();
    await here.join(watcher);
    expect([here.isWatched, there.isWatched, world.handlers.tail.size]).toEqual([true, true, 1]);
    here.leave(watcher);
    await world.pass(1);
    expect([here.isWatched, there.isWatched, world.handlers.tail.size]).toEqual([false, false, 0]);
    await world.pass(60_000);
    expect(world.sent).toEqual([]);
  });

  test('forgets a process that stops announcing its watchers, and keeps one that continues', async () => {
    const world = newWorld();
    const there = world.process('there');
    world.notifier.publish('tailInterest', [encodeInterest({ from: 'gone', filters: [EVERYTHING] })]);
    await world.pass(14_000);
    expect(there.isWatched).toBe(true);
    await world.pass(2_000);
    expect(there.isWatched).toBe(false);
    await world.process('here').join(newWatcher());
    await world.pass(60_000);
    expect(there.isWatched).toBe(true);
  });

  test('sends other processes only what their filters match, and shows each watcher what its filter matches', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there')];
    const [acme, one] = [newWatcher({ tenant: 'acme' }), newWatcher({ endpointId: ONE })];
    await here.join(acme);
    await here.join(one);
    for (const tail of [here, there]) {
      for (const tenant of ['acme', 'umbrella']) tail.onAccepted(event(tenant));
      tail.onSettled([settled(ONE, 'umbrella'), settled(newId(NOW), 'umbrella')]);
    }
    await world.pass(100);
    expect(acme.shown.map(([name, data]) => [name, data.tenant])).toEqual([
      ['event.accepted', 'acme'],
      ['event.accepted', 'acme'],
    ]);
    expect(one.shown.map(([name, data]) => [name, data.endpoint_id])).toEqual([
      ['attempt', publicId('ep', ONE)],
      ['attempt', publicId('ep', ONE)],
    ]);
    expect(JSON.parse(world.sent.join('')).messages).toHaveLength(2);
  });

  test('shows a sample of too many messages, and tells a tenant only how many of its own are missing', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there', 100)];
    const [all, acme, quiet] = [
      newWatcher(),
      newWatcher({ tenant: 'acme' }),
      newWatcher({ tenant: 'quiet' }),
    ];
    for (const watcher of [all, acme, quiet]) await here.join(watcher);
    for (let i = 0; i < 45; i += 1) there.onAccepted(event(i % 3 === 0 ? 'acme' : 'umbrella'));
    // The noise of other tenants does not hide it.
    there.onAccepted(event('quiet'));
    await world.pass(100);
    const seen = ({ shown }: typeof all) => shown.filter(([name]) => name === 'event.accepted').length;
    const missing = ({ shown }: typeof all) => shown.find(([name]) => name === 'sampled')?.[1].skipped;
    expect([seen(all), missing(all)]).toEqual([21, 25]);
    expect([seen(acme), missing(acme)]).toEqual([10, 5]);
    expect([seen(quiet), missing(quiet)]).toEqual([1, undefined]);
  });

  test('reports and ignores messages that it cannot read', async () => {
    const world = newWorld();
    const here = world.process('here');
    await here.join(newWatcher());
    world.notifier.publish('tailInterest', ['nonsense']);
    world.notifier.publish('tail', ['{"from":']);
    await world.pass(1);
    expect(world.onProblem).toHaveBeenCalledTimes(2);
  });

  test.each([
    'null',
    '{"from":"x","filters":[null]}',
    '{"from":"x","filters":[{"tenant":1}]}',
    '{"from":"x","filters":"all"}',
    '{"filters":[]}',
  ])('ignores an invalid announcement of filters: %s', async (payload) => {
    const world = newWorld();
    const here = world.process('here');
    world.notifier.publish('tailInterest', [payload]);
    await world.pass(1);
    here.onAccepted(event('acme'));
    here.onSettled([settled(ONE, 'acme')]);
    await world.pass(1000);
    expect(here.isWatched).toBe(false);
    expect(world.onProblem).toHaveBeenCalledTimes(1);
  });

  test.each([
    'null',
    '{"from":"x","messages":[null],"skipped":{}}',
    '{"from":"x","messages":[{"event":"attempt"}],"skipped":{}}',
    '{"from":"x","messages":[{"event":"a\\n\\ndata: b","data":{}}],"skipped":{}}',
    '{"from":"x","messages":[],"skipped":null}',
    '{"from":"x","messages":[],"skipped":{"acme":"9"}}',
  ])('does not show invalid messages: %s', async (payload) => {
    const world = newWorld();
    const watcher = newWatcher();
    await world.process('here').join(watcher);
    world.notifier.publish('tail', [payload]);
    await world.pass(1);
    expect(watcher.shown).toEqual([]);
    expect(world.onProblem).toHaveBeenCalledTimes(1);
  });

  test('splits messages into payloads that fit into a NOTIFY and loses none', () => {
    const messages = Array.from({ length: 200 }, (_, n) => ({
      event: 'event.accepted' as const,
      data: { n, type: 'ü'.repeat(100) },
    }));
    const payloads = encodeBatch({ from: 'here', messages, skipped: { acme: 3 } });
    expect(Math.max(...payloads.map((payload) => Buffer.byteLength(payload)))).toBeLessThan(8000);
    const read = payloads.map((payload) => JSON.parse(payload));
    expect(read.flatMap((batch) => batch.messages)).toEqual(messages);
    expect(read.map(({ skipped }) => skipped.acme ?? 0).reduce((a, b) => a + b)).toBe(3);
    const filters = Array.from({ length: 40 }, (_, n) => ({ ...EVERYTHING, type: `type.${n}` }));
    expect(JSON.parse(encodeInterest({ from: 'here', filters })).filters).toEqual([EVERYTHING]);
  });
});
