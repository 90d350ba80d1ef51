/**
 * Limits the requests in flight after an outage: first one, then twice as many after each round of successes, until
 * the endpoint's own limit is reached.
 */
export class SlowStart {
  #window = Number.POSITIVE_INFINITY;
  #successesInRound = 0;

  /** How many requests may be in flight. Infinity: no slow start. */
  get window(): number {
    return this.#window;
  }

  start(): void {
    this.#window = 1;
    this.#successesInRound = 0;
  }

  recordSuccess(maxInFlight: number): void {
    if (this.#window === Number.POSITIVE_INFINITY) return;
    this.#successesInRound += 1;
    if (this.#successesInRound < this.#window) return;
    this.#successesInRound = 0;
    this.#window *= 2;
    if (this.#window >= maxInFlight) this.#window = Number.POSITIVE_INFINITY;
  }
}
