/** Messages through a Redis that others may use, and that fails. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/needs.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';
import { PREFIX, type RedisProcess, startRedisProcess } from '../../support/redis-process.ts';

describe('messages through Redis', needs(whyNoRedis), () => {
  let redis: TestRedis;
  let processes: RedisProcess[] = [];
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    redis.resume();
    await Promise.all(processes.map((process) => process.stop()));
    processes = [];
    await redis.stop();
  });
  const start = async (options: Partial<Parameters<typeof startRedisProcess>[0]> = {}) => {
    const process = await startRedisProcess({ url: redis.url, ...options });
    processes.push(process);
    return process;
  };
  const listen = async ({ bus }: RedisProcess, channel: string): Promise<string[]> => {
    const received: string[] = [];
    bus.subscribe(channel, (message) => received.push(message.toString()));
    await bus.flush();
    return received;
  };
  /** The messages of a channel, as Redis has them. */
  const spy = async (channel: string): Promise<Buffer[]> => {
    const seen: Buffer[] = [];
    const { link } = await start();
    link.subscribe(`${PREFIX}:${channel}`, (message) => seen.push(message));
    await link.flush();
    return seen;
  };

  test('the content of a message cannot be read in Redis', async () => {
    const [from, seen] = [await start(), await spy('a')];
    await from.bus.publish('a', Buffer.from('a secret payload'));
    await eventually('the message is there', () => seen.length === 1);
    expect(seen[0]!.includes('secret')).toBe(false);
  });

  test('messages of strangers, changed, repeated and misdirected ones are refused', async () => {
    const [from, to, seen] = [await start(), await start(), await spy('a')];
    const [received, elsewhere] = [await listen(to, 'a'), await listen(to, 'b')];
    await from.bus.publish('a', Buffer.from('one'));
    await eventually('the message is there', () => received.length === 1 && seen.length === 1);
    const sealed = seen[0]!;
    const changed = Buffer.from(sealed);
    changed[changed.length - 1]! ^= 1;
    const stranger = await start({ keys: new Map([['0123456789ab', Buffer.alloc(32, 9)]]) });
    const unknownKey = await start({ keys: new Map([['ba9876543210', Buffer.alloc(32, 1)]]) });
    for (const attack of [
      () => redis.run('PUBLISH', `${PREFIX}:a`, 'plain text'),
      () => redis.run('PUBLISH', `${PREFIX}:a`, Buffer.alloc(200, 1)),
      () => redis.run('PUBLISH', `${PREFIX}:a`, changed),
      () => redis.run('PUBLISH', `${PREFIX}:a`, sealed),
      () => redis.run('PUBLISH', `${PREFIX}:b`, sealed),
      () => stranger.bus.publish('a', Buffer.from('stranger')),
      () => unknownKey.bus.publish('a', Buffer.from('unknown key')),
    ]) {
      const before = to.bus.refused;
      await attack();
      await eventually('the message is refused', () => to.bus.refused === before + 1);
    }
    await from.bus.publish('a', Buffer.from('two'));
    await eventually('authentic messages still arrive', () => received.length === 2);
    expect([received, elsewhere]).toEqual([['one', 'two'], []]);
  });

  test('a message that waited too long is refused', async () => {
    const late = await start({ clock: { ...systemClock, now: () => Date.now() - 11_000 } });
    const to = await start();
    const received = await listen(to, 'a');
    await late.bus.publish('a', Buffer.from('old'));
    await eventually('it is refused', () => to.bus.refused === 1);
    expect(received).toEqual([]);
  });

  test('while keys are rotated, processes with both keys understand each other', async () => {
    const [old, next] = [Buffer.alloc(32, 3), Buffer.alloc(32, 4)];
    const before = await start({ keys: new Map([['aaaaaaaaaaaa', old]]) });
    const after = await start({
      keys: new Map([
        ['bbbbbbbbbbbb', next],
        ['aaaaaaaaaaaa', old],
      ]),
    });
    const received = await listen(after, 'a');
    await before.bus.publish('a', Buffer.from('hello'));
    await eventually('the message is there', () => received.length === 1);
  });

  test('a Redis that hangs is noticed within a second, delays no other work, and is used again when it answers', async () => {
    const [from, to] = [await start(), await start()];
    const received = await listen(to, 'a');
    redis.hang();
    const startedAt = performance.now();
    expect(await from.bus.publish('a', Buffer.from('late'))).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(from.bus.isUsable).toBe(false);
    const again = performance.now();
    expect(await from.bus.publish('a', Buffer.from('not even sent'))).toBe(0);
    expect(performance.now() - again).toBeLessThan(50);
    await eventually('the connection is given up', () => !from.link.isConnected && !to.link.isConnected);
    redis.resume();
    await eventually(
      'messages arrive again',
      async () => (await from.bus.publish('a', Buffer.from('back'))) === 1 && received.includes('back'),
    );
    expect(received).not.toContain('not even sent');
  });

  test('a process starts while Redis is away or hangs, and uses it when it is there', async () => {
    await redis.crash();
    const early = await start({ waits: false });
    await eventually('the problem is reported', () => early.problems.length > 0);
    expect(early.problems[0]).toMatch(/use Redis: .*ECONNREFUSED/);
    await redis.restart();
    await eventually('it is connected', () => early.link.isConnected);
    redis.hang();
    const hung = await start({ waits: false });
    await eventually('the problem is reported', () => hung.problems.length > 0);
    expect(hung.problems[0]).toMatch(/use Redis: Error: Redis does not answer/);
    redis.resume();
    await eventually('it is connected', () => hung.link.isConnected);
  });

  test('a wrong password is reported without the password, and does not stop the process', async () => {
    const locked = await startRedis({ password: 'right' });
    try {
      const url = locked.url.replace('right', 'wrong-one');
      const process = await start({ url, waits: false });
      await eventually('the problem is reported', () => process.problems.length > 0);
      expect(process.problems[0]).toMatch(/WRONGPASS/);
      expect(process.problems.join()).not.toContain('wrong-one');
      expect(process.bus.isUsable).toBe(false);
      expect(await process.bus.publish('a', Buffer.from('x'))).toBe(0);
      const allowed = await start({ url: locked.url });
      expect(await allowed.bus.publish('a', Buffer.from('x'))).toBe(0);
      expect(allowed.bus.isUsable).toBe(true);
    } finally {
      await Promise.all(processes.splice(0).map((each) => each.stop()));
      await locked.stop();
    }
  });

  test('a server that stays away is reported once a minute, not at every try', async () => {
    const process = await start();
    await redis.crash();
    let tries = 0;
    const silent = createServer((socket) => {
      tries += 1;
      socket.destroy();
    }).listen(redis.port, '127.0.0.1');
    await eventually('it has tried to connect several times', () => tries >= 3);
    silent.close();
    await once(silent, 'close');
    expect(process.problems).toHaveLength(1);
    await redis.restart();
    await eventually('it is connected', () => process.link.isConnected);
  });
});
