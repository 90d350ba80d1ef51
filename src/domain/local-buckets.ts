import type { Clock } from './clock.ts';
import type { RateLimit } from './endpoint.ts';
import { TokenBucket } from './token-bucket.ts';

/** Makes buckets that only this process uses. They start full. */
export class LocalBuckets {
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  create(_name: string, limit: RateLimit): TokenBucket {
    return new TokenBucket(limit, this.#clock.monotonic(), limit.burst);
  }
}
