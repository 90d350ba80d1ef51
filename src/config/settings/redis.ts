import { text, url } from '../kinds.ts';

export const redis = {
  redisUrl: url({
    default: null,
    schemes: ['redis', 'rediss'],
    secret: true,
    about:
      'Redis or Valkey (6.2 or later), such as `redis://:password@redis:6379`; `rediss` uses TLS. All processes of a deployment must use the same server. Nodes without a direct connection then hand deliveries over through it, and rate limits count for all processes together. Posthorn keeps working while Redis is unavailable. See [several nodes](scale-out.md#redis).',
  }),
  redisPrefix: text({
    default: 'posthorn',
    maxLength: 100,
    about:
      'Start of the names of all keys and channels in Redis. A copy of a deployment, with the same keys and data, needs another one if it uses the same Redis.',
  }),
};
