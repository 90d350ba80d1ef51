export { RedisBus } from './bus.ts';
export { openRedisSession, type RedisSession } from './client.ts';
export { LeasedBuckets } from './leased-buckets.ts';
export { RedisLink } from './link.ts';
