import { describe, expect, test, vi } from 'vitest';
import { newEventId, newId, publicId, type Uuid } from '../../domain/ids.ts';
import type { TailFilter } from './message.ts';
import { LiveTail } from './tail.ts';
import { EVERYTHING, encodeBatch, encodeInterest } from './wire.ts';

const NOW = 1_800_000_000_000;
const ONE = newId(NOW);

/** Processes on one database, in a time of their own. */
function newWorld() {
  let now = 0;
  const timers: { at: number; task: () => void }[] = [];
  const tails: LiveTail[] = [];
  const listeners = new Map<string, (payload: string) => void>();
  const sent: string[] = [];
  const problem = vi.fn();
  return {
    sent,
    listeners,
    problem,
    /** Lets time pass, and what was asked for happen. */
    async pass(ms: number): Promise<void> {
      const end = now + ms;
      for (;;) {
        // A message is heard some turns of the event loop after it was sent.
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
        name,
        messagesPerSecond,
        announceMs: 5000,
        announce: async (payload) => {
          for (const each of tails) each.heardInterest(payload);
        },
        send: async (payloads) => {
          sent.push(...payloads);
          for (const payload of payloads) for (const heard of listeners.values()) heard(payload);
        },
        listen: async (heard) => {
          listeners.set(name, heard);
          return () => void listeners.delete(name);
        },
        problem,
      });
      tails.push(tail);
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
  test('nobody sends anything while nobody watches, nor after the last one has left', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there')];
    expect([here.open, there.open]).toEqual([false, false]);
    const watcher = newWatcher();
    await here.join(watcher);
    expect([here.open, there.open, world.listeners.size]).toEqual([true, true, 1]);
    here.leave(watcher);
    await world.pass(1);
    expect([here.open, there.open, world.listeners.size]).toEqual([false, false, 0]);
    await world.pass(60_000);
    expect(world.sent).toEqual([]);
  });

  test('a process that vanished without a word is forgotten; one that goes on saying so is not', async () => {
    const world = newWorld();
    const there = world.process('there');
    there.heardInterest(encodeInterest({ from: 'gone', filters: [EVERYTHING] }));
    await world.pass(14_000);
    expect(there.open).toBe(true);
    await world.pass(2_000);
    expect(there.open).toBe(false);
    await world.process('here').join(newWatcher());
    await world.pass(60_000);
    expect(there.open).toBe(true);
  });

  test('only what is asked for is sent, and everybody sees what fits', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there')];
    const [acme, one] = [newWatcher({ tenant: 'acme' }), newWatcher({ endpointId: ONE })];
    await here.join(acme);
    await here.join(one);
    for (const tail of [here, there]) {
      for (const tenant of ['acme', 'umbrella']) tail.accepted(event(tenant));
      tail.settled([settled(ONE, 'umbrella'), settled(newId(NOW), 'umbrella')]);
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

  test('of too many a sample is shown; a tenant is told of its own that are missing, and of no others', async () => {
    const world = newWorld();
    const [here, there] = [world.process('here'), world.process('there', 100)];
    const [all, acme, quiet] = [
      newWatcher(),
      newWatcher({ tenant: 'acme' }),
      newWatcher({ tenant: 'quiet' }),
    ];
    for (const watcher of [all, acme, quiet]) await here.join(watcher);
    there.accepted(event('quiet'));
    for (let i = 0; i < 30; i += 1) there.accepted(event(i % 3 === 0 ? 'acme' : 'umbrella'));
    await world.pass(100);
    const seen = ({ shown }: typeof all) => shown.filter(([name]) => name === 'event.accepted').length;
    const missing = ({ shown }: typeof all) => shown.find(([name]) => name === 'sampled')?.[1].skipped;
    expect([seen(all), missing(all)]).toEqual([10, 21]);
    expect([seen(acme), missing(acme)]).toEqual([3, 7]);
    expect([seen(quiet), missing(quiet)]).toEqual([1, undefined]);
  });

  test('what it does not understand is reported, and nothing else happens', async () => {
    const world = newWorld();
    const here = world.process('here');
    await here.join(newWatcher());
    here.heardInterest('nonsense');
    world.listeners.get('here')!('{"from":');
    expect(world.problem).toHaveBeenCalledTimes(2);
  });

  test.each([
    'null',
    '{"from":"x","filters":[null]}',
    '{"from":"x","filters":[{"tenant":1}]}',
    '{"from":"x","filters":"all"}',
    '{"filters":[]}',
  ])('an interest that somebody else made up changes nothing for what is accepted: %s', async (payload) => {
    const world = newWorld();
    const here = world.process('here');
    here.heardInterest(payload);
    here.accepted(event('acme'));
    here.settled([settled(ONE, 'acme')]);
    await world.pass(1000);
    expect(here.open).toBe(false);
    expect(world.problem).toHaveBeenCalledTimes(1);
  });

  test.each([
    'null',
    '{"from":"x","messages":[null],"skipped":{}}',
    '{"from":"x","messages":[{"event":"attempt"}],"skipped":{}}',
    '{"from":"x","messages":[{"event":"a\\n\\ndata: b","data":{}}],"skipped":{}}',
    '{"from":"x","messages":[],"skipped":null}',
    '{"from":"x","messages":[],"skipped":{"acme":"9"}}',
  ])('messages that somebody else made up are not shown: %s', async (payload) => {
    const world = newWorld();
    const watcher = newWatcher();
    await world.process('here').join(watcher);
    world.listeners.get('here')!(payload);
    expect(watcher.shown).toEqual([]);
    expect(world.problem).toHaveBeenCalledTimes(1);
  });

  test('payloads fit into a NOTIFY, and carry everything', () => {
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
