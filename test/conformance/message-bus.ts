import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { MessageBus } from '../../src/ports/message-bus.ts';
import { eventually } from '../support/eventually.ts';

export interface MessageBusFixture {
  /** The bus of one more process, connected. */
  create(): Promise<MessageBus>;
  /** Takes the server away at once. */
  breakServer(): Promise<void>;
  /** Brings it back. */
  restoreServer(): Promise<void>;
  close(): Promise<void>;
}

export function describeMessageBus(name: string, createFixture: () => Promise<MessageBusFixture>): void {
  describe(`the message bus in ${name}`, () => {
    let fixture: MessageBusFixture;
    beforeEach(async () => {
      fixture = await createFixture();
    });
    afterEach(() => fixture.close());

    const listen = async (bus: MessageBus, channel: string) => {
      const received: { text: string; from: Uuid }[] = [];
      const end = bus.subscribe(channel, (message, from) =>
        received.push({ text: message.toString('latin1'), from }),
      );
      await bus.flush();
      return { received, end };
    };
    const send = (bus: MessageBus, channel: string, text: string) =>
      bus.publish(channel, Buffer.from(text, 'latin1'));

    it('brings a message to the subscribers of its channel, says who sent it and how many received it', async () => {
      const [from, one, two] = [await fixture.create(), await fixture.create(), await fixture.create()];
      const [first, second, other] = [await listen(one, 'a'), await listen(two, 'a'), await listen(two, 'b')];
      const bytes = String.fromCharCode(0, 255, 10, 13);
      expect(await send(from, 'a', bytes)).toBe(2);
      const expected = [{ text: bytes, from: from.id }];
      await eventually('both have it', () => first.received.length + second.received.length === 2);
      expect([first.received, second.received, other.received]).toEqual([expected, expected, []]);
    });

    it('returns 0 if nobody subscribes', async () => {
      const [from, to] = [await fixture.create(), await fixture.create()];
      const { end } = await listen(to, 'a');
      end();
      await to.flush();
      expect(await send(from, 'a', 'x')).toBe(0);
    });

    it('brings no process its own messages', async () => {
      const [from, to] = [await fixture.create(), await fixture.create()];
      const [own, others] = [await listen(from, 'a'), await listen(to, 'a')];
      await send(from, 'a', 'mine');
      await send(to, 'a', 'yours');
      await eventually('the other has it', () => others.received.length === 1);
      await eventually('the message of the other arrives', () => own.received.length === 1);
      expect(own.received).toEqual([{ text: 'yours', from: to.id }]);
    });

    it('keeps the order of many messages, small and large', async () => {
      const [from, to] = [await fixture.create(), await fixture.create()];
      const { received } = await listen(to, 'a');
      const texts = Array.from({ length: 200 }, (_, n) => String(n).repeat(n % 20 === 0 ? 20_000 : 1));
      await Promise.all(texts.map((text) => send(from, 'a', text)));
      await eventually('all are there', () => received.length === texts.length);
      expect(received.map(({ text }) => text)).toEqual(texts);
    });

    it('goes on after a handler that throws', async () => {
      const [from, to] = [await fixture.create(), await fixture.create()];
      const received: string[] = [];
      to.subscribe('a', (message) => {
        received.push(message.toString());
        if (received.length === 1) throw new Error('cannot take it');
      });
      await to.flush();
      for (const text of ['one', 'two']) await send(from, 'a', text);
      await eventually('both were tried', () => received.length === 2);
    });

    it('says at once that the server is away, and works again when it is back', async () => {
      const [from, to] = [await fixture.create(), await fixture.create()];
      const { received } = await listen(to, 'a');
      let connected = 0;
      to.onConnected(() => {
        connected += 1;
      });
      await fixture.breakServer();
      await eventually('it notices', () => !from.isUsable && !to.isUsable);
      const startedAt = performance.now();
      expect(await send(from, 'a', 'lost')).toBe(0);
      expect(performance.now() - startedAt).toBeLessThan(100);
      await to.flush();
      await fixture.restoreServer();
      await eventually('both are connected', () => from.isUsable && connected === 1);
      await eventually('the subscription works', async () => (await send(from, 'a', 'back')) === 1);
      await eventually('the message is there', () => received.length > 0);
      expect(new Set(received.map(({ text }) => text))).toEqual(new Set(['back']));
    });
  });
}
