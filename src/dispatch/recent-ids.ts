import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';

/** Keeps each id for at least `forMs`. While ids are added, it drops each after less than three times as long. */
export class RecentIds {
  readonly #clock: Clock;
  readonly #forMs: number;
  #young = new Set<Uuid>();
  #old = new Set<Uuid>();
  #youngSince: number;

  constructor(clock: Clock, forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
    this.#youngSince = clock.monotonic();
  }

  add(id: Uuid): void {
    this.#expire();
    this.#young.add(id);
  }

  has(id: Uuid): boolean {
    return this.#young.has(id) || this.#old.has(id);
  }

  #expire(): void {
    const now = this.#clock.monotonic();
    const age = now - this.#youngSince;
    if (age < this.#forMs) return;
    this.#old = age < 2 * this.#forMs ? this.#young : new Set();
    this.#young = new Set();
    this.#youngSince = now;
  }
}
