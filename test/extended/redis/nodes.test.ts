/** Two nodes that reach only PostgreSQL and Redis, as real programs, while Redis is killed, hangs and comes back. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { openTail } from '../../support/live-tail.ts';
import { needs } from '../../support/needs.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
} from '../../support/posthorn.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../support/redis.ts';
import { readScrape } from '../../support/scrape.ts';

describe('SCL-2: nodes with Redis', needs(whyNoRedis), () => {
  let database: TestDatabase;
  let redis: TestRedis;
  let running: TestPosthorn[] = [];
  beforeEach(async () => {
    [database, redis] = await Promise.all([createTestDatabase(), startRedis({ password: 'pass-word' })]);
  });
  afterEach(async () => {
    redis.resume();
    await Promise.all(running.map((each) => each.stop()));
    running = [];
    await Promise.all([redis.stop(), database.drop()]);
  });

  const start = async (args: string[] = [], env: Record<string, string> = {}) => {
    const posthorn = await startTestPosthorn({
      database,
      args,
      env: { POSTHORN_REDIS_URL: redis.url, ...env },
    });
    running.push(posthorn);
    return posthorn;
  };
  const scrape = async ({ api }: TestPosthorn) => readScrape((await api('GET', '/metrics')).text);
  const handedOn = async (node: TestPosthorn, to: string): Promise<number> =>
    (await scrape(node)).value('posthorn_deliveries_handed_on_total', { to });
  const isConnected = async (node: TestPosthorn): Promise<boolean> =>
    (await scrape(node)).value('posthorn_redis_connections', { state: 'up' }) === 1;

  /** A node that accepts and one that delivers, and a function that publishes an event. */
  const startPair = async (env: Record<string, string> = {}) => {
    const accepting = await start(['--role', 'api'], env);
    const delivering = await start([], env);
    const [receiver, tenant] = [await newReceiver(), newTenant()];
    await createEndpoint(accepting, { url: receiver.url, tenant });
    const ids: string[] = [];
    const publishOne = async (): Promise<number> => {
      const startedAt = performance.now();
      ids.push((await publish(accepting, { tenant, type: 'a.b', data: ids.length })).id);
      return performance.now() - startedAt;
    };
    const publishUntilHandedTo = async (to: string, more = 0): Promise<void> => {
      const before = await handedOn(accepting, to);
      await eventually(`deliveries go to ${to}`, async () => {
        await publishOne();
        return (await handedOn(accepting, to)) > before + more;
      });
    };
    const allArrived = () =>
      eventually('everything has arrived', () => arrivals(receiver.requests).size === ids.length, {
        saw: () => ({ published: ids.length, arrived: arrivals(receiver.requests).size }),
      });
    return { accepting, delivering, receiver, ids, publishOne, publishUntilHandedTo, allArrived };
  };

  test('a node hands what it accepts to the other one through Redis, and nothing else is notified', async () => {
    const pair = await startPair();
    await pair.publishUntilHandedTo('redis');
    const notified = await handedOn(pair.accepting, 'notify');
    for (let n = 0; n < 30; n += 1) await pair.publishOne();
    expect(await handedOn(pair.accepting, 'notify')).toBe(notified);
    await pair.allArrived();
    expect(pair.receiver.requests).toHaveLength(pair.ids.length);
    expect(pair.accepting.output()).not.toContain('pass-word');
  });

  test('a direct connection is used instead of Redis', async () => {
    const pair = await startPair({ POSTHORN_PEER_LISTEN: '127.0.0.1:0' });
    await pair.publishUntilHandedTo('sibling');
    const through = await handedOn(pair.accepting, 'redis');
    for (let n = 0; n < 30; n += 1) await pair.publishOne();
    expect(await handedOn(pair.accepting, 'redis')).toBe(through);
    await pair.allArrived();
  });

  test('kill -9 of Redis in the middle of a run loses nothing and stops nothing, and Redis is used again', async () => {
    const pair = await startPair();
    await pair.publishUntilHandedTo('redis');
    const publishing = (async () => {
      let slowestMs = 0;
      for (let n = 0; n < 300; n += 1) slowestMs = Math.max(slowestMs, await pair.publishOne());
      return slowestMs;
    })();
    await eventually('the run has begun', () => pair.ids.length > 50);
    await redis.crash();
    expect(await publishing).toBeLessThan(5_000);
    await pair.allArrived();
    await pair.publishUntilHandedTo('notify');
    await eventually('the metric says so', async () => !(await isConnected(pair.accepting)));
    await redis.restart();
    await pair.publishUntilHandedTo('redis', 5);
    await pair.allArrived();
  });

  test('a Redis that hangs in the middle of a run loses nothing and stops nothing', async () => {
    const pair = await startPair();
    await pair.publishUntilHandedTo('redis');
    await pair.allArrived();
    redis.hang();
    // This delivery is on its way through Redis. No other event wakes its owner.
    await pair.publishOne();
    await pair.allArrived();
    let slowestMs = 0;
    for (let n = 0; n < 100; n += 1) slowestMs = Math.max(slowestMs, await pair.publishOne());
    expect(slowestMs).toBeLessThan(5_000);
    await pair.allArrived();
    const fellBack = (await scrape(pair.accepting)).value('posthorn_redis_fallbacks_total', {
      use: 'hand_over',
    });
    expect(fellBack).toBeGreaterThan(0);
    redis.resume();
    await pair.publishUntilHandedTo('redis', 5);
    await pair.allArrived();
  });

  test('a node that dies is notified through the database until another one has its shards', async () => {
    const pair = await startPair();
    await pair.publishUntilHandedTo('redis');
    await pair.delivering.kill('SIGKILL');
    running = running.filter((each) => each !== pair.delivering);
    for (let n = 0; n < 20; n += 1) await pair.publishOne();
    await pair.publishUntilHandedTo('notify');
    await start();
    await pair.publishUntilHandedTo('redis');
    await pair.allArrived();
  });

  test('a wrong password stops nothing', async () => {
    const pair = await startPair({ POSTHORN_REDIS_URL: redis.url.replace('pass-word', 'not-this-one') });
    for (let n = 0; n < 10; n += 1) await pair.publishOne();
    await pair.allArrived();
    expect(await isConnected(pair.accepting)).toBe(false);
    expect(pair.accepting.output()).toContain('WRONGPASS');
    expect(pair.accepting.output()).not.toContain('not-this-one');
  });

  test('the publish limit of a tenant holds for two nodes together', async () => {
    const env = { POSTHORN_TENANT_INGEST_PER_SECOND: '0.01', POSTHORN_TENANT_INGEST_BURST: '20' };
    const [one, two] = [await start([], env), await start([], env)];
    await eventually('both are connected', async () => (await isConnected(one)) && (await isConnected(two)));
    const tenant = newTenant();
    const statuses: number[] = [];
    for (let n = 0; n < 30; n += 1)
      for (const node of [one, two]) {
        const { status } = await node.api('POST', '/v1/events', { tenant, type: 'a.b', data: n });
        statuses.push(status);
      }
    // A process takes on credit only until Redis has answered for the first time.
    const accepted = statuses.filter((status) => status === 202).length;
    expect(accepted).toBeGreaterThanOrEqual(20);
    expect(accepted).toBeLessThanOrEqual(22);
    expect(new Set(statuses)).toEqual(new Set([202, 429]));
  });

  test('the limit of an API key holds for two nodes together', async () => {
    const [one, two] = [await start(), await start()];
    await eventually('both are connected', async () => (await isConnected(one)) && (await isConnected(two)));
    const { body } = await expectStatus(
      one.api('POST', '/v1/keys', { scope: 'admin', rate_limit: { per_second: 0.01, burst: 20 } }),
      201,
    );
    const statuses: number[] = [];
    for (let n = 0; n < 30; n += 1)
      for (const node of [one, two])
        statuses.push((await node.api('GET', '/v1/endpoints', undefined, { key: body.key })).status);
    const allowed = statuses.filter((status) => status === 200).length;
    expect(allowed).toBeGreaterThanOrEqual(20);
    expect(allowed).toBeLessThanOrEqual(22);
  });

  test('a live tail shows what the other node does, through Redis and, when it is away, through the database', async () => {
    const [one, two] = [await start(), await start()];
    await eventually('both are connected', async () => (await isConnected(one)) && (await isConnected(two)));
    const tenant = newTenant();
    const tail = await openTail(one, `tenant=${tenant}`);
    const showsNext = async (): Promise<void> => {
      const { id } = await publish(two, { tenant, type: 'a.b', data: 1 });
      await tail.find(
        'the event is shown',
        ({ event, data }) => event === 'event.accepted' && data.id === id,
      );
    };
    const fellBack = async () =>
      (await scrape(two)).value('posthorn_redis_fallbacks_total', { use: 'live_tail' });
    await showsNext();
    const before = await fellBack();
    for (let n = 0; n < 3; n += 1) await showsNext();
    expect(await fellBack()).toBe(before);
    await redis.crash();
    await eventually('both notice', async () => !(await isConnected(one)) && !(await isConnected(two)));
    for (let n = 0; n < 3; n += 1) await showsNext();
    expect(await fellBack()).toBeGreaterThan(before);
    const shown = tail.of('event.accepted').map(({ data }) => data.id);
    expect(new Set(shown).size).toBe(shown.length);
  });
});
