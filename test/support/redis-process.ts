/** What one process of a deployment does with Redis, without the rest of Posthorn. */
import { systemClock } from '../../src/domain/clock.ts';
import { LeasedBuckets, RedisBus, RedisLink } from '../../src/redis/index.ts';
import { newId } from '../conformance/support/ids.ts';
import { eventually } from './eventually.ts';

export const PREFIX = 'posthorn:test:1';
const KEYS = new Map([['0123456789ab', Buffer.alloc(32, 1)]]);

export interface RedisProcessOptions {
  readonly url: string;
  readonly keys?: ReadonlyMap<string, Buffer>;
  readonly clock?: typeof systemClock;
  /** Default: wait for the connection. */
  readonly waits?: boolean;
}

export async function startRedisProcess(options: RedisProcessOptions) {
  const { url, keys = KEYS, clock = systemClock, waits = true } = options;
  const problems: string[] = [];
  const onProblem = (what: string, error: unknown): void => void problems.push(`${what}: ${error}`);
  const link = new RedisLink({ url, clock: systemClock, onProblem });
  const bus = new RedisBus({ link, id: newId(), prefix: PREFIX, keys, clock, onProblem });
  const newBuckets = (nowMs?: () => number) =>
    new LeasedBuckets({
      link,
      prefix: PREFIX,
      hashKey: Buffer.alloc(24, 2),
      clock,
      onProblem,
      ...(nowMs !== undefined && { nowMs }),
    });
  link.start();
  if (waits)
    await eventually('the process is connected to Redis', () => link.isConnected, { saw: () => problems });
  return { link, bus, newBuckets, problems, stop: () => link.stop() };
}

export type RedisProcess = Awaited<ReturnType<typeof startRedisProcess>>;
