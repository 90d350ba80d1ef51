/** Composes what this process does with Redis: messages between processes, and rate limits that they share. */
import type { ComposeOptions } from './compose-app.ts';
import { newId } from './domain/ids.ts';
import type { Database } from './postgres/database.ts';
import { readDeploymentSecret } from './postgres/queries/deployment.ts';
import { keyIdOf } from './postgres/secret-box.ts';
import { LeasedBuckets, RedisBus, RedisLink } from './redis/index.ts';

export interface RedisParts {
  readonly link: RedisLink;
  readonly bus: RedisBus;
  readonly buckets: LeasedBuckets;
}

/**
 * Raise this when the messages or the keys change. Processes with different versions do not share messages or limits.
 */
const WIRE_VERSION = 1;
const NAME_BYTES = 8;

/** Returns null if Redis is not configured. */
export async function createRedis(
  { config, clock, onProblem }: Pick<ComposeOptions, 'config' | 'clock' | 'onProblem'>,
  { database }: { readonly database: Database },
): Promise<RedisParts | null> {
  if (config.redisUrl === null) return null;
  const secret = await readDeploymentSecret(database.pool('api'));
  const name = secret.subarray(0, NAME_BYTES).toString('hex');
  const prefix = `${config.redisPrefix}:${name}:${WIRE_VERSION}`;
  const link = new RedisLink({ url: config.redisUrl, clock, onProblem });
  const keys = [config.encryptionKey, ...config.previousEncryptionKeys];
  return {
    link,
    bus: new RedisBus({
      link,
      id: newId(clock.now()),
      prefix,
      keys: new Map(keys.map((key) => [keyIdOf(key), key])),
      clock,
      onProblem,
    }),
    buckets: new LeasedBuckets({ link, prefix, hashKey: secret.subarray(NAME_BYTES), clock, onProblem }),
  };
}
