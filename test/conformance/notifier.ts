import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { Channels, Notifier } from '../../src/ports/notifier.ts';
import { eventually } from '../support/eventually.ts';
import { newId } from './support/ids.ts';

export interface NotifierFixture {
  /** The notifier of one more process. */
  create(): Notifier;
  /** Breaks the connections of all notifiers. */
  breakConnections(): Promise<void>;
  close(): Promise<void>;
}

export function describeNotifier(name: string, createFixture: () => Promise<NotifierFixture>): void {
  describe(`the notifier in ${name}`, () => {
    let fixture: NotifierFixture;
    let started: Notifier[] = [];
    beforeEach(async () => {
      fixture = await createFixture();
    });
    afterEach(async () => {
      await Promise.all(started.map((notifier) => notifier.stop()));
      started = [];
      await fixture.close();
    });

    const start = async (subscribe: (notifier: Notifier) => void = () => {}): Promise<Notifier> => {
      const notifier = fixture.create();
      subscribe(notifier);
      started.push(notifier);
      await notifier.start();
      return notifier;
    };
    /** Messages have no answer, so a test knows that a message was not delivered when a later one has arrived. */
    const listen = async (): Promise<{ notifier: Notifier; received: string[] }> => {
      const received: string[] = [];
      const notifier = await start((each) => {
        each.subscribe('tailInterest', (message) => received.push(message));
        each.subscribe('tasks', (message) => received.push(`tasks: ${message}`));
      });
      return { notifier, received };
    };

    it('reaches every process that subscribed, the sender included, and no other channel', async () => {
      const [first, second] = [await listen(), await listen()];
      first.notifier.publish('shards', [null]);
      first.notifier.publish('tailInterest', ['a', 'b']);
      first.notifier.publish('tasks', [null]);
      for (const { received } of [first, second]) {
        await eventually('all messages arrive', () => received.length === 3, { saw: () => received });
        expect(received.filter((each) => !each.startsWith('tasks'))).toEqual(['a', 'b']);
        expect(received).toContain('tasks: null');
      }
    });

    it('survives a handler that throws, and still calls the others', async () => {
      const heard: string[] = [];
      const notifier = await start((each) => {
        each.subscribe('tailInterest', () => {
          throw new Error('a handler that cannot take the message');
        });
        each.subscribe('tailInterest', (message) => heard.push(message));
      });
      notifier.publish('tailInterest', ['a']);
      notifier.publish('tailInterest', ['b']);
      await eventually('both messages arrive', () => heard.length === 2, { saw: () => heard });
    });

    it('delivers wakes for all their endpoints, even a thousand at once', async () => {
      const woken = new Map<Uuid, string>();
      const notifier = await start((each) =>
        each.subscribe('wake', ({ endpointIds, scope }) => {
          for (const id of endpointIds) woken.set(id, scope);
        }),
      );
      const endpointIds = Array.from({ length: 1_000 }, () => newId());
      notifier.publish('wake', [{ endpointIds, scope: 'recent' }]);
      await eventually('all are woken', () => woken.size === 1_000, { saw: () => woken.size });
      expect([...woken.keys()].toSorted()).toEqual(endpointIds.toSorted());
      expect(new Set(woken.values())).toEqual(new Set(['recent']));
    });

    it('delivers the wider scope of two wakes', async () => {
      const wakes: Channels['wake'][] = [];
      const notifier = await start((each) => each.subscribe('wake', (wake) => wakes.push(wake)));
      const [a, b] = [newId(), newId()];
      notifier.publish('wake', [
        { endpointIds: [a], scope: 'sweep' },
        { endpointIds: [a, b], scope: 'recent' },
      ]);
      const isWoken = (id: Uuid, scope: string): boolean =>
        wakes.some((wake) => wake.scope === scope && wake.endpointIds.includes(id));
      await eventually('both are woken', () => isWoken(a, 'sweep') && isWoken(b, 'recent'), {
        saw: () => wakes,
      });
    });

    it('ends one subscription and not the other', async () => {
      const received: string[] = [];
      const notifier = await start();
      const endFirst = notifier.subscribe('tailInterest', (message) => received.push(`first ${message}`));
      notifier.subscribe('tailInterest', (message) => received.push(`second ${message}`));
      await notifier.flush();
      notifier.publish('tailInterest', ['a']);
      await eventually('both subscribers receive it', () => received.length === 2);
      endFirst();
      notifier.publish('tailInterest', ['b']);
      await eventually('the other subscriber receives it', () => received.length === 3);
      expect(received.slice(2)).toEqual(['second b']);
    });

    it('calls onReconnected after each connection, and receives later messages', async () => {
      let connected = 0;
      const { notifier, received } = await listen();
      notifier.onReconnected(() => {
        connected += 1;
      });
      expect(notifier.isConnected).toBe(true);
      await fixture.breakConnections();
      await eventually('it is connected again', () => connected === 1 && notifier.isConnected);
      notifier.publish('tailInterest', ['after']);
      await eventually('the message arrives', () => received.includes('after'));
    });

    it('calls onReconnected when it starts', async () => {
      let connected = 0;
      await start((notifier) =>
        notifier.onReconnected(() => {
          connected += 1;
        }),
      );
      expect(connected).toBe(1);
    });

    it('receives nothing after it was stopped, but sends messages that were published before', async () => {
      const [stopping, other] = [await listen(), await listen()];
      stopping.notifier.publish('tailInterest', ['last']);
      await stopping.notifier.stop();
      expect(stopping.notifier.isConnected).toBe(false);
      await eventually('the other subscriber receives it', () => other.received.includes('last'));
      const before = stopping.received.length;
      other.notifier.publish('tailInterest', ['later']);
      await eventually('the other process receives its own message', () => other.received.includes('later'));
      expect(stopping.received.length).toBe(before);
    });
  });
}
