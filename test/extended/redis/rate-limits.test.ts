/** Rate limits that several processes share. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RateLimit } from '../../../src/domain/endpoint.ts';
import type { RateBucket } from '../../../src/ports/rate-limits.ts';
import { eventually } from '../../support/eventually.ts';
import { needs } from '../../support/needs.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.ts';

describe('SCL-2: rate limits of all processes together', needs(whyNoRedis), () => {
  let redis: TestRedis;
  let processes: RedisProcess[] = [];
  let nowMs = 0;
  beforeEach(async () => {
    nowMs = 1_000_000;
    redis = await startRedis();
  });
  afterEach(async () => {
    redis.resume();
    await Promise.all(processes.map((process) => process.stop()));
    processes = [];
    await redis.stop();
  });

  let timers: { at: number; task: () => void }[] = [];
  const clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    after(delayMs: number, task: () => void) {
      const timer = { at: nowMs + delayMs, task };
      timers.push(timer);
      return () => {
        timers = timers.filter((each) => each !== timer);
      };
    },
  };
  const start = async () => {
    const process = await startRedisProcess({ url: redis.url, clock });
    processes.push(process);
    const buckets = process.newBuckets(() => nowMs);
    return { ...process, buckets, bucket: (limit: RateLimit) => buckets.create('tenant acme', limit) };
  };
  const settle = async () => {
    for (let turn = 0; turn < 3; turn += 1)
      for (const { link } of processes) await link.run(['PING']).catch(() => {});
  };
  /** Advances the virtual time in steps, and runs the timers that are due. */
  const pass = async (ms: number, stepMs = 10) => {
    const end = nowMs + ms;
    while (nowMs < end) {
      nowMs = Math.min(end, nowMs + stepMs);
      const due = timers.filter(({ at }) => at <= nowMs);
      timers = timers.filter(({ at }) => at > nowMs);
      for (const { task } of due) task();
      await settle();
    }
  };
  const takeMany = (bucket: RateBucket, times: number): number =>
    Array.from({ length: times }, () => bucket.tryTake(nowMs)).filter(Boolean).length;

  test.each([
    ['a high limit', { perSecond: 1000, burst: 1000 }, 10_000],
    ['a low limit', { perSecond: 2, burst: 4 }, 60_000],
  ])(
    'three processes together get what %s allows, however the requests are spread',
    async (_name, limit, ms) => {
      const [one, two, three] = [await start(), await start(), await start()];
      const buckets = [one.bucket(limit), two.bucket(limit), three.bucket(limit)];
      let taken = 0;
      const step = ms / 200;
      for (let turn = 0; turn < 200; turn += 1) {
        // The first process has most of the load, the third little.
        for (const [index, share] of [1, 0.5, 0.1].entries())
          taken += takeMany(buckets[index]!, Math.ceil(limit.perSecond * (step / 1000) * 2 * share));
        await pass(step);
      }
      const allowed = limit.burst + (limit.perSecond * ms) / 1000;
      expect(taken).toBeLessThanOrEqual(allowed * 1.05 + 6);
      expect(taken).toBeGreaterThanOrEqual(allowed * 0.9 - 3);
    },
  );

  test('a process that is alone gets the whole limit, with one round trip for many requests', async () => {
    const { bucket, link } = await start();
    const limit = { perSecond: 1000, burst: 1000 };
    const own = bucket(limit);
    const before = await countScripts(redis);
    let taken = 0;
    for (let turn = 0; turn < 100; turn += 1) {
      taken += takeMany(own, 10);
      await pass(10);
    }
    expect(taken).toBe(1000);
    expect(link.isUsable).toBe(true);
    expect((await countScripts(redis)) - before).toBeLessThan(40);
  });

  test('many processes that each use little get the whole limit, because unused tokens go back', async () => {
    const { newBuckets } = await start();
    const limit = { perSecond: 100, burst: 100 };
    const buckets = Array.from({ length: 20 }, () => newBuckets(() => nowMs).create('tenant acme', limit));
    let taken = 0;
    // Each asks 6 times a second. A block of 10 tokens lasts longer than a second.
    for (let turn = 0; turn < 2_000; turn += 1) {
      for (const [index, bucket] of buckets.entries())
        if ((turn + index) % 16 === 0) taken += takeMany(bucket, 1);
      await pass(10);
    }
    const allowed = limit.burst + limit.perSecond * 20;
    expect(taken).toBeLessThanOrEqual(allowed * 1.05);
    expect(taken).toBeGreaterThanOrEqual(allowed * 0.9);
  });

  test('an idle process keeps nothing from the others', async () => {
    const [one, two] = [await start(), await start()];
    const limit = { perSecond: 100, burst: 100 };
    const [first, second] = [one.bucket(limit), two.bucket(limit)];
    expect(takeMany(first, 1)).toBe(1);
    await settle();
    // The first has leased a block by now, and does not use it for a minute.
    await pass(60_000, 1_000);
    expect(takeMany(second, 100)).toBe(100);
    await settle();
    expect(takeMany(first, 1)).toBe(1);
    await settle();
    expect(takeMany(first, 50)).toBe(0);
  });

  test('without Redis each process counts for itself, at once, and together again when Redis is back', async () => {
    const [one, two] = [await start(), await start()];
    const limit = { perSecond: 2, burst: 10 };
    const [first, second] = [one.bucket(limit), two.bucket(limit)];
    expect(takeMany(first, 10)).toBe(10);
    await settle();
    expect(takeMany(second, 1)).toBe(1);
    await settle();
    expect(takeMany(second, 5)).toBe(0);
    await redis.crash();
    await eventually('both notice', () => !one.link.isUsable && !two.link.isUsable);
    const startedAt = performance.now();
    expect(takeMany(second, 20)).toBe(9);
    expect(takeMany(first, 20)).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(50);
    expect(two.buckets.fallBacks).toBeGreaterThan(0);
    await redis.restart();
    await eventually('both are connected', () => one.link.isUsable && two.link.isUsable);
    await pass(60_000, 1_000);
    takeMany(first, 10);
    await settle();
    takeMany(second, 1);
    await settle();
    expect(takeMany(second, 5)).toBe(0);
  });

  test('a Redis that hangs delays no request', async () => {
    const { bucket, link } = await start();
    const own = bucket({ perSecond: 1000, burst: 1000 });
    takeMany(own, 10);
    await settle();
    redis.hang();
    const startedAt = performance.now();
    expect(takeMany(own, 900)).toBe(900);
    expect(performance.now() - startedAt).toBeLessThan(100);
    await eventually('it is not used any more', () => !link.isUsable);
  });

  test('a Redis that may not run scripts is reported, and each process counts for itself', async () => {
    const { bucket, problems } = await start();
    await redis.run('ACL', 'SETUSER', 'default', '-@scripting');
    const own = bucket({ perSecond: 1, burst: 5 });
    expect(takeMany(own, 10)).toBe(5);
    await settle();
    expect(takeMany(own, 10)).toBe(0);
    expect(problems.join()).toMatch(/lease tokens from Redis: .*NOPERM/);
    expect(problems).toHaveLength(1);
  });

  test('names of tenants are not readable in Redis, and buckets expire', async () => {
    const { bucket } = await start();
    takeMany(bucket({ perSecond: 10, burst: 10 }), 1);
    await settle();
    const names = (await redis.run('KEYS', '*')) as string[];
    expect(names).toHaveLength(1);
    expect(names[0]).not.toContain('acme');
    expect(Number(await redis.run('PTTL', names[0]!))).toBeGreaterThan(0);
  });
});

async function countScripts(redis: TestRedis): Promise<number> {
  const stats = String(await redis.run('INFO', 'commandstats'));
  return ['evalsha', 'eval'].reduce(
    (sum, name) => sum + Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0),
    0,
  );
}
