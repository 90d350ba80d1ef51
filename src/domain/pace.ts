/**
 * How fast requests leave, where something may have to be read between a request's turn and its leaving. Turns come at
 * the rate, so that the right number is under way; and leaving happens at the rate, or those that were held up together
 * would leave together, and a burst that was saved up meanwhile right behind them.
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

  /** It was taken for nothing. */
  giveTurnBack(): void {
    this.#turns.giveBack();
  }

  /** 0: it leaves. Otherwise it is to ask again after so many milliseconds. */
  leave(now: number): number {
    return this.#exits.tryTake(now) ? 0 : this.#exits.msUntilNext(now);
  }
}
