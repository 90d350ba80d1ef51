import type { Clock } from '../domain/clock.ts';
import type { RateLimit } from '../domain/endpoint.ts';
import type { RateLimits } from '../ports/rate-limits.ts';

/** The same limit for every key. Buckets start full. */
export class MemoryRateLimits implements RateLimits {
  readonly #limit: RateLimit;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(limit: RateLimit, clock: Pick<Clock, 'monotonic'>) {
    this.#limit = limit;
    this.#clock = clock;
  }

  take(key: string, count = 1): number {
    const now = this.#clock.monotonic();
    const { perSecond, burst } = this.#limit;
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    const missing = Math.max(0, count - tokens);
    this.#buckets.set(key, { tokens: missing > 0 ? tokens : tokens - count, at: now });
    return missing / perSecond;
  }
}
