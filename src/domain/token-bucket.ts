import type { RateLimit } from './endpoint.ts';

/** A token bucket that computes its level on demand, without a timer. Times are monotonic, in milliseconds. */
export class TokenBucket {
  readonly #limit: RateLimit;
  #tokens: number;
  #at: number;

  constructor(limit: RateLimit, now: number, tokens: number) {
    this.#limit = limit;
    this.#tokens = tokens;
    this.#at = now;
  }

  /** Takes `count` tokens, or none if there are fewer. */
  tryTake(now: number, count = 1): boolean {
    this.#fill(now);
    if (this.#tokens < count) return false;
    this.#tokens -= count;
    return true;
  }

  /** Returns tokens that were not used. */
  giveBack(count = 1): void {
    this.#tokens = Math.min(this.#tokens + count, this.#capacity);
  }

  msUntilNext(now: number, count = 1): number {
    this.#fill(now);
    return this.#tokens >= count ? 0 : Math.ceil(((count - this.#tokens) / this.#limit.perSecond) * 1000);
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#capacity, this.#tokens + ((now - this.#at) / 1000) * this.#limit.perSecond);
    this.#at = now;
  }

  /** At least one: a smaller burst would never allow anything. */
  get #capacity(): number {
    return Math.max(1, this.#limit.burst);
  }
}
