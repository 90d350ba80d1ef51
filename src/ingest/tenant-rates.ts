import type { Clock } from '../domain/clock.ts';
import type { RateLimit } from '../domain/endpoint.ts';
import { TokenBucket } from '../domain/token-bucket.ts';

const MAX_BUCKETS = 10_000;

/** How fast each tenant may publish through this process: by a limit of its own, or by that of all. */
export class TenantRates {
  readonly #common: RateLimit | null;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();
  #own: ReadonlyMap<string, RateLimit> = new Map();

  /** `perSecond` 0: no limit for those that have none of their own. */
  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#common = perSecond > 0 ? { perSecond, burst } : null;
    this.#clock = clock;
  }

  /** All limits that tenants have of their own. Buckets of those that did not change keep their level. */
  setOwn(limits: ReadonlyMap<string, RateLimit>): void {
    for (const tenant of new Set([...this.#own.keys(), ...limits.keys()])) {
      const [was, is] = [this.#own.get(tenant), limits.get(tenant)];
      if (was?.perSecond !== is?.perSecond || was?.burst !== is?.burst) this.#buckets.delete(tenant);
    }
    this.#own = limits;
  }

  /** Seconds to wait, or 0 if the event may come in. */
  take(tenant: string): number {
    if (this.#common === null && this.#own.size === 0) return 0;
    let bucket = this.#buckets.get(tenant);
    const now = this.#clock.monotonic();
    if (bucket === undefined) {
      const limit = this.#own.get(tenant) ?? this.#common;
      if (limit === null) return 0;
      // Tenants are named by whoever publishes. Forgetting them all now and then gives each one burst too many.
      if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
      bucket = new TokenBucket(limit, now, limit.burst);
      this.#buckets.set(tenant, bucket);
    }
    return bucket.tryTake(now) ? 0 : bucket.msUntilNext(now) / 1000;
  }
}
