import type { Clock } from './domain/clock.ts';

/**
 * The first phase of a stop: the process is unready but still serves, so that load balancers send new requests elsewhere
 * before it closes.
 */
export class LameDuck {
  isStopping = false;
  readonly #waitMs: number;
  readonly #clock: Clock;

  constructor(waitMs: number, clock: Clock) {
    this.#waitMs = waitMs;
    this.#clock = clock;
  }

  async wait(): Promise<void> {
    this.isStopping = true;
    if (this.#waitMs === 0) return;
    await new Promise<void>((resolve) => this.#clock.after(this.#waitMs, resolve));
  }
}
