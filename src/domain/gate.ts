/** Lets a limited number of calls run at once and a limited number wait. Every further call is refused. */
export class Gate {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limits: { readonly maxRunning: number; readonly maxWaiting: number }) {
    this.#maxRunning = limits.maxRunning;
    this.#maxWaiting = limits.maxWaiting;
  }

  /** Returns the result of `work`, or null if too many calls wait already. */
  async run<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.#running >= this.#maxRunning) {
      if (this.#waiting.length >= this.#maxWaiting) return null;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      // Whoever waits takes over the place.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
