import type { Clock } from '../domain/clock.ts';
import { TokenBucket } from '../domain/token-bucket.ts';

const MAX_BUCKETS = 10_000;

/** How fast each tenant may publish through this process. Off when the rate is 0. */
export class TenantRates {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#clock = clock;
  }

  /** Seconds to wait, or 0 if the event may come in. */
  take(tenant: string): number {
    if (this.#perSecond <= 0) return 0;
    let bucket = this.#buckets.get(tenant);
    const now = this.#clock.monotonic();
    if (bucket === undefined) {
      // Tenants are named by whoever publishes. Forgetting them all now and then gives each one burst too many.
      if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
      bucket = new TokenBucket({ perSecond: this.#perSecond, burst: this.#burst }, now, this.#burst);
      this.#buckets.set(tenant, bucket);
    }
    return bucket.tryTake(now) ? 0 : bucket.msUntilNext(now) / 1000;
  }
}
