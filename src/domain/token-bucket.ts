import type { RateLimit } from './endpoint.ts';

/** A token bucket that computes its level when asked: no timer. Times are of a monotonic clock, in milliseconds. */
export class TokenBucket {
  readonly #limit: RateLimit;
  #tokens: number;
  #at: number;

  constructor(limit: RateLimit, now: number, tokens: number) {
    this.#limit = limit;
    this.#tokens = tokens;
    this.#at = now;
  }

  tryTake(now: number): boolean {
    this.#fill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** A token that was taken for nothing: the attempt was not started after all. */
  giveBack(): void {
    this.#tokens = Math.min(this.#tokens + 1, this.#capacity);
  }

  msUntilNext(now: number): number {
    this.#fill(now);
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.#limit.perSecond) * 1000);
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#capacity, this.#tokens + ((now - this.#at) / 1000) * this.#limit.perSecond);
    this.#at = now;
  }

  /** A burst below one would never let anything through. */
  get #capacity(): number {
    return Math.max(1, this.#limit.burst);
  }
}
