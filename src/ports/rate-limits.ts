import type { RateLimit } from '../domain/endpoint.ts';

/** Token buckets by key: how fast a tenant may publish, how fast an API key may call. */
export interface RateLimits {
  /** Takes `count` tokens of `key`. Returns 0 if they were there, otherwise the seconds to wait before trying again. */
  take(key: string, count?: number): number;
}

/** The tokens of one key. Times are monotonic, in milliseconds. Calls never wait. */
export interface RateBucket {
  /** Takes `count` tokens, or none if there are fewer. */
  tryTake(now: number, count?: number): boolean;
  msUntilNext(now: number, count?: number): number;
}

/** Makes buckets, for this process alone or shared by all processes. */
export interface RateBuckets {
  /** A full bucket. `name` identifies it in all processes. */
  create(name: string, limit: RateLimit): RateBucket;
}

/** The publish limits that tenants have of their own. */
export interface TenantLimits {
  /** Reads all of them, by tenant. Tenants that use the default limit are missing. Throws `StoreError`. */
  load(): Promise<ReadonlyMap<string, RateLimit>>;
}
