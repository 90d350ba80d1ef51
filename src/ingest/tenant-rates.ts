import type { Clock } from '../domain/clock.ts';
import type { RateLimit } from '../domain/endpoint.ts';
import type { RateBucket, RateBuckets, RateLimits, TenantLimits } from '../ports/rate-limits.ts';

const MAX_BUCKETS = 10_000;

export interface TenantRatesOptions {
  readonly limits: TenantLimits;
  readonly buckets: RateBuckets;
  readonly clock: Clock;
  /** For tenants without a limit of their own. 0: no limit. */
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * How fast each tenant may publish. The buckets decide whether a limit is for this process alone or for all
 * processes.
 */
export class TenantRates implements RateLimits {
  readonly #source: TenantLimits;
  readonly #default: RateLimit | null;
  readonly #clock: Clock;
  readonly #bucketMaker: RateBuckets;
  readonly #buckets = new Map<string, RateBucket>();
  #own: ReadonlyMap<string, RateLimit> = new Map();

  constructor({ limits, buckets, clock, perSecond, burst }: TenantRatesOptions) {
    this.#source = limits;
    this.#default = perSecond > 0 ? { perSecond, burst } : null;
    this.#clock = clock;
    this.#bucketMaker = buckets;
  }

  /** Reads the limits that tenants have of their own. Buckets whose limit did not change keep their level. */
  async reload(): Promise<void> {
    const limits = await this.#source.load();
    for (const tenant of new Set([...this.#own.keys(), ...limits.keys()])) {
      const [before, after] = [this.#own.get(tenant), limits.get(tenant)];
      if (before?.perSecond !== after?.perSecond || before?.burst !== after?.burst)
        this.#buckets.delete(tenant);
    }
    this.#own = limits;
  }

  take(tenant: string, count = 1): number {
    if (this.#default === null && this.#own.size === 0) return 0;
    let bucket = this.#buckets.get(tenant);
    const now = this.#clock.monotonic();
    if (bucket === undefined) {
      const limit = this.#own.get(tenant) ?? this.#default;
      if (limit === null) return 0;
      // Producers choose tenant names, so the map is bounded. Clearing it gives each tenant one extra burst.
      if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
      bucket = this.#bucketMaker.create(`tenant ${tenant}`, limit);
      this.#buckets.set(tenant, bucket);
    }
    return bucket.tryTake(now, count) ? 0 : bucket.msUntilNext(now, count) / 1000;
  }
}
