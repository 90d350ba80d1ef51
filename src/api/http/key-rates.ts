import type { Clock } from '../../domain/clock.ts';
import type { RateLimit } from '../../domain/endpoint.ts';
import type { Uuid } from '../../domain/ids.ts';
import { TokenBucket } from '../../domain/token-bucket.ts';
import type { KeyRecord } from '../../postgres/queries/keys.ts';

const MAX_BUCKETS = 10_000;

/**
 * How many requests each key may make of this process. A key is looked up anew every few seconds; its bucket stays, or
 * it would be full again each time. A key's limit never changes.
 */
export class KeyRates {
  readonly #common: RateLimit | null;
  readonly #clock: Clock;
  readonly #buckets = new Map<Uuid, TokenBucket>();

  /** `perSecond` 0: no limit for keys that have none of their own. */
  constructor(perSecond: number, burst: number, clock: Clock) {
    this.#common = perSecond > 0 ? { perSecond, burst } : null;
    this.#clock = clock;
  }

  /** Null: it may go on as it likes. */
  bucketOf({ id, rate_per_second, rate_burst }: KeyRecord): TokenBucket | null {
    const limit =
      rate_per_second === null ? this.#common : { perSecond: rate_per_second, burst: rate_burst ?? 1 };
    if (limit === null) return null;
    let bucket = this.#buckets.get(id);
    if (bucket === undefined) {
      // Forgetting them all now and then gives each one burst too many.
      if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
      bucket = new TokenBucket(limit, this.#clock.monotonic(), limit.burst);
      this.#buckets.set(id, bucket);
    }
    return bucket;
  }
}
