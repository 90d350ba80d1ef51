/** The ports that Redis implements, on a real server. */
import { describe } from 'vitest';
import { BusLinks, PeerLinks } from '../../../src/dispatch/index.ts';
import { systemClock } from '../../../src/domain/clock.ts';
import { TenantRates } from '../../../src/ingest/index.ts';
import { describeHandOver } from '../../conformance/hand-over.ts';
import { describeMessageBus } from '../../conformance/message-bus.ts';
import { describeRateLimits } from '../../conformance/rate-limits.ts';
import { needs } from '../../support/needs.ts';
import { startRedis, whyNoRedis } from '../../support/redis.ts';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.ts';

describe('SCL-2: on Redis', needs(whyNoRedis), () => {
  describeMessageBus('Redis', async () => {
    const redis = await startRedis();
    const processes: RedisProcess[] = [];
    return {
      async create() {
        const process = await startRedisProcess(redis);
        processes.push(process);
        return process.bus;
      },
      breakServer: () => redis.crash(),
      restoreServer: () => redis.restart(),
      async close() {
        await Promise.all(processes.map((process) => process.stop()));
        await redis.stop();
      },
    };
  });

  describeHandOver('Redis', async () => {
    const redis = await startRedis();
    const processes: RedisProcess[] = [];
    // The suite creates hand-overs without waiting, so the connections must be there.
    for (let n = 0; n < 3; n += 1) processes.push(await startRedisProcess(redis));
    const unused = [...processes];
    return {
      create() {
        const { bus } = unused.shift()!;
        const onProblem = () => {};
        return new PeerLinks({
          id: bus.id,
          transports: [],
          bus: new BusLinks(bus),
          clock: systemClock,
          onProblem,
        });
      },
      async close() {
        await Promise.all(processes.map((process) => process.stop()));
        await redis.stop();
      },
    };
  });

  describeRateLimits('Redis', async (limit, clock) => {
    const redis = await startRedis();
    const process = await startRedisProcess({ ...redis, clock });
    return {
      limits: new TenantRates({
        limits: { load: async () => new Map() },
        buckets: process.newBuckets(() => clock.now()),
        clock,
        ...limit,
      }),
      // A lease that is under way was sent before this command. A second one may follow from it.
      async settled() {
        for (let turn = 0; turn < 2; turn += 1) await process.link.run(['PING']);
      },
      async close() {
        await process.stop();
        await redis.stop();
      },
    };
  });
});
