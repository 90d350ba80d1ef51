/**
 * A rate limit for requests that may have to load something between their turn and their start. Both are limited: turns,
 * so that the right number of requests is prepared, and starts, because requests that were delayed together would
 * otherwise start together, followed by the burst that was saved up meanwhile.
 */
import type { RateLimit } from './endpoint.ts';
import { TokenBucket } from './token-bucket.ts';

export class Pace {
  readonly #turns: TokenBucket;
  readonly #exits: TokenBucket;

  constructor(limit: RateLimit, now: number, tokens: number) {
    this.#turns = new TokenBucket(limit, now, tokens);
    this.#exits = new TokenBucket(limit, now, tokens);
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

  /** Returns 0 if the request may start, otherwise the milliseconds to wait before asking again. */
  leave(now: number): number {
    return this.#exits.tryTake(now) ? 0 : this.#exits.msUntilNext(now);
  }
}
