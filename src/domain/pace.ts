/**
 * A rate limit that applies twice: when a delivery gets its turn, and when its request starts after its payload was loaded.
 * Turns are limited, so that the right number of requests is prepared. Starts are limited too: otherwise requests that
 * were delayed together would start together, followed by the burst that was saved up meanwhile.
 */
import type { RateLimit } from './endpoint.ts';
import { TokenBucket } from './token-bucket.ts';

export class Pace {
  readonly #turns: TokenBucket;
  readonly #starts: TokenBucket;

  constructor(limit: RateLimit, now: number, tokens: number) {
    this.#turns = new TokenBucket(limit, now, tokens);
    this.#starts = new TokenBucket(limit, now, tokens);
  }

  msUntilTurn(now: number): number {
    return this.#turns.msUntilNext(now);
  }

  takeTurn(now: number): boolean {
    return this.#turns.tryTake(now);
  }

  /** Returns a turn that was not used. */
  giveTurnBack(): void {
    this.#turns.giveBack();
  }

  /** Returns 0 if the request may start now, otherwise the milliseconds to wait before the next call. */
  tryStart(now: number): number {
    return this.#starts.tryTake(now) ? 0 : this.#starts.msUntilNext(now);
  }
}
