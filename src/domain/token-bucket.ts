import type { RateLimit } from './endpoint.ts';

/**
 * A token bucket that computes its level when asked: no timer. Times are of a monotonic clock, in milliseconds.
 *
 * What is let through at once takes its token (`tryTake`). What still has something to wait for reserves one, and spends
 * it or gives it back: until then the bucket has that much less room, or those that waited would leave together with a
 * whole burst that was saved up meanwhile.
 */
export class TokenBucket {
  readonly #limit: RateLimit;
  #tokens: number;
  #at: number;
  #reserved = 0;

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

  reserve(now: number): boolean {
    if (!this.tryTake(now)) return false;
    this.#reserved += 1;
    return true;
  }

  /** What it was reserved for happens now. */
  spend(now: number): void {
    this.#fill(now);
    this.#reserved -= 1;
  }

  /** What it was reserved for does not happen after all. */
  giveBack(): void {
    this.#reserved -= 1;
    this.#tokens = Math.min(this.#tokens + 1, this.#room);
  }

  msUntilNext(now: number): number {
    this.#fill(now);
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.#limit.perSecond) * 1000);
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#room, this.#tokens + ((now - this.#at) / 1000) * this.#limit.perSecond);
    this.#at = now;
  }

  /** A burst below one would never let anything through. */
  get #room(): number {
    return Math.max(1, this.#limit.burst) - this.#reserved;
  }
}
