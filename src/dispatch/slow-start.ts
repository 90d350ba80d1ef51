/**
 * After an outage the first request goes alone. The window doubles after each round in which as many succeeded as it
 * has places, and is gone when it is as wide as the endpoint allows.
 */
export class SlowStart {
  #window = Number.POSITIVE_INFINITY;
  #successesInRound = 0;

  /** How many at once, at most. */
  get window(): number {
    return this.#window;
  }

  begin(): void {
    this.#window = 1;
    this.#successesInRound = 0;
  }

  succeeded(maxInFlight: number): void {
    if (this.#window === Number.POSITIVE_INFINITY) return;
    this.#successesInRound += 1;
    if (this.#successesInRound < this.#window) return;
    this.#successesInRound = 0;
    this.#window *= 2;
    if (this.#window >= maxInFlight) this.#window = Number.POSITIVE_INFINITY;
  }
}
