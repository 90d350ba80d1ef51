import type { RateLimit } from '../../domain/endpoint.ts';
import { type Caller, nameOfCaller } from '../../manage/caller.ts';
import type { RateBucket, RateBuckets } from '../../ports/rate-limits.ts';
import type { KeyRecord } from '../../postgres/queries/keys.ts';

const MAX_BUCKETS = 10_000;

/**
 * The rate limits of API keys and of people, in this process or in all of them, as the buckets count. Buckets outlive the
 * cache of keys: a new bucket every few seconds would always be full. The limit of a key never changes, so its bucket
 * stays valid.
 */
export class KeyRates {
  readonly #defaultLimit: RateLimit | null;
  readonly #bucketMaker: RateBuckets;
  /** By the id of the key, or `user:` and the subject. */
  readonly #buckets = new Map<string, RateBucket>();

  /** The default limit, for keys without their own. `perSecond` 0: no limit. */
  constructor(perSecond: number, burst: number, buckets: RateBuckets) {
    this.#defaultLimit = perSecond > 0 ? { perSecond, burst } : null;
    this.#bucketMaker = buckets;
  }

  /** The bucket of a key. Null: it has no limit. */
  bucketOf({ id, rate_per_second, rate_burst }: KeyRecord): RateBucket | null {
    const limit =
      rate_per_second === null ? this.#defaultLimit : { perSecond: rate_per_second, burst: rate_burst ?? 1 };
    return this.#bucketFor(id, limit);
  }

  /** The bucket of a person, shared by all of their sessions. Null: there is no default limit. */
  bucketOfPerson(person: Caller): RateBucket | null {
    return this.#bucketFor(nameOfCaller(person), this.#defaultLimit);
  }

  #bucketFor(name: string, limit: RateLimit | null): RateBucket | null {
    if (limit === null) return null;
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      // Clearing all of them gives each key one extra burst, which is harmless.
      if (this.#buckets.size >= MAX_BUCKETS) this.#buckets.clear();
      bucket = this.#bucketMaker.create(`key ${name}`, limit);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }
}
