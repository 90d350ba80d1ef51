/** The token buckets that all processes share, and the script that leases tokens from one. */
import { createHash } from 'node:crypto';
import type { RateLimit } from '../domain/endpoint.ts';
import type { RedisLink } from './link.ts';

/**
 * Refills the bucket, subtracts the owed tokens (negative: returned tokens), and grants up to the wanted number of
 * tokens. Owed tokens are already used, so the level may fall below 0. Returns the granted tokens and the remaining
 * level. Uses the time of Redis, because the clocks of the processes differ.
 */
const SCRIPT = `
local perMs, burst = tonumber(ARGV[1]) / 1000, tonumber(ARGV[2])
local owed, wanted = tonumber(ARGV[3]), tonumber(ARGV[4])
local now = tonumber(ARGV[5])
if now == nil then
  local time = redis.call('TIME')
  now = time[1] * 1000 + time[2] / 1000
end
local stored = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(stored[1]) or burst, tonumber(stored[2]) or now
if now > at then level = level + (now - at) * perMs end
level = math.min(burst, math.min(burst, level) - owed)
local granted = math.max(0, math.min(wanted, math.floor(level)))
level = level - granted
redis.call('HSET', KEYS[1], 'level', string.format('%.6f', level), 'at', string.format('%.3f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - level) / perMs) + 1000)
return { granted, string.format('%.6f', level) }
`;
const SHA1 = createHash('sha1').update(SCRIPT).digest('hex');

export interface LeaseRequest {
  readonly key: string;
  readonly limit: RateLimit;
  /** Tokens that were used without a lease, minus tokens that are returned. */
  readonly owed: number;
  readonly wanted: number;
  /** Null: the time of Redis. */
  readonly nowMs: number | null;
}

export interface Lease {
  readonly granted: number;
  /** The level of the bucket after the lease. Negative: processes took more tokens on credit than it had. */
  readonly left: number;
}

/** Leases tokens in one round trip. Rejects if Redis is unavailable. */
export async function leaseTokens(
  link: Pick<RedisLink, 'run'>,
  { key, limit, owed, wanted, nowMs }: LeaseRequest,
): Promise<Lease> {
  const numbers = [limit.perSecond, limit.burst, owed, wanted].map(String);
  const rest = ['1', key, ...numbers, nowMs === null ? '' : String(nowMs)];
  const reply = await link.run(['EVALSHA', SHA1, ...rest]).catch((error: unknown) => {
    if (!String((error as Error).message).startsWith('NOSCRIPT')) throw error;
    return link.run(['EVAL', SCRIPT, ...rest]);
  });
  const [granted, left] = reply as [number, string];
  return { granted: Number(granted), left: Number(left) };
}
