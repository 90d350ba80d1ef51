import { type Config, maskUrl } from '../../config/index.ts';
import { openRedisSession, type RedisSession } from '../../redis/index.ts';
import { type Finding, ok, warning } from './finding.ts';

const CHECK = 'Redis';
const TIMEOUT_MS = 3_000;
const OLDEST = [6, 2] as const;
const ROUND_TRIPS = 5;
/** Above this, deliveries through Redis gain little over the database. */
const SLOW_ROUND_TRIP_MS = 20;

/** Null: Redis is not configured. A failure is only a warning: Posthorn works without Redis. */
export async function checkRedis({
  redisUrl,
  redisPrefix,
}: Pick<Config, 'redisUrl' | 'redisPrefix'>): Promise<Finding | null> {
  if (redisUrl === null) return null;
  const where = maskUrl(redisUrl);
  let session: RedisSession | null = null;
  let timer: NodeJS.Timeout | undefined;
  try {
    session = await openRedisSession({ url: redisUrl, connectTimeoutMs: TIMEOUT_MS, onLost: () => {} });
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('Redis does not answer.')), TIMEOUT_MS);
    });
    return await Promise.race([judge(session, where, redisPrefix), timeout]);
  } catch (error) {
    return warning(
      CHECK,
      `${where} cannot be used (${(error as Error).message}). Posthorn works without it, more slowly between nodes.`,
      'Start Redis, or correct POSTHORN_REDIS_URL and the permissions of its user.',
    );
  } finally {
    clearTimeout(timer);
    session?.destroy();
  }
}

async function judge(session: RedisSession, where: string, prefix: string): Promise<Finding> {
  const info = String(await session.run(['INFO', 'server']));
  const read = (field: string): string | undefined => new RegExp(`^${field}:(\\S+)`, 'm').exec(info)?.[1];
  const valkey = read('valkey_version');
  const version = valkey ?? read('redis_version') ?? 'unknown';
  const name = `${valkey === undefined ? 'Redis' : 'Valkey'} ${version}`;
  // What Posthorn needs permissions for.
  await session.subscribe([`${prefix}:doctor`], () => {});
  await session.run(['PUBLISH', `${prefix}:doctor`, 'hello']);
  await session.run(['EVAL', "return redis.call('HGET', KEYS[1], 'level')", '1', `${prefix}:doctor`]);
  const roundTripMs = await measureRoundTrip(session);
  const detail = `${where}: ${name}, round trip ${roundTripMs.toFixed(1)} ms`;
  if (read('redis_mode') === 'cluster')
    return warning(
      CHECK,
      `${detail}. It is a cluster.`,
      'Use a single server with replicas: in a cluster, keys and the number of receivers are per node.',
    );
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return warning(CHECK, detail, `Use Redis ${OLDEST.join('.')} or later, or Valkey.`);
  if (roundTripMs > SLOW_ROUND_TRIP_MS)
    return warning(CHECK, detail, 'Use a Redis in the network of the nodes: this one is slow to reach.');
  return ok(CHECK, detail);
}

/** The median of several. */
async function measureRoundTrip(session: RedisSession): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < ROUND_TRIPS; n += 1) {
    const startedAt = performance.now();
    await session.run(['PING']);
    times.push(performance.now() - startedAt);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(ROUND_TRIPS / 2)]!;
}
