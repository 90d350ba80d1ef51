/** All code takes the time from a `Clock`, so that tests and the simulation run weeks in milliseconds. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. May jump. */
  now(): number;
  /** For deadlines and durations: never goes back, and advances while the process is stopped by SIGSTOP. */
  monotonic(): number;
  /** Runs `task` once after `delayMs`. The returned function cancels it. Does not keep the process alive. */
  after(delayMs: number, task: () => void): () => void;
}

/** Node's timers overflow past 24.8 days and would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Differences from the database's clock up to this one may come from the network. */
const MAX_NOISE_MS = 100;
/** The time of an answer is uncertain by half of its round trip. */
const MAX_ROUND_TRIP_MS = 2 * MAX_NOISE_MS;

/**
 * An estimate of the database's clock: the machine's own clock plus a correction. With it, ids and due times of all
 * processes come from one clock.
 */
export class DatabaseClock implements Clock {
  readonly #base: Clock;
  #offsetMs = 0;
  #isSet = false;

  constructor(base: Clock) {
    this.#base = base;
  }

  now(): number {
    return this.#base.now() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  after(delayMs: number, task: () => void): () => void {
    return this.#base.after(delayMs, task);
  }

  /**
   * Corrects the clock by the time in an answer of the database, which took `roundTripMs`. Ignores differences of up to
   * 100 ms, which may come from the network. Once the offset is known, ignores slow answers: they could set the clock back.
   */
  correct(databaseNow: number, roundTripMs = 0): void {
    if (this.#isSet && roundTripMs > MAX_ROUND_TRIP_MS) return;
    this.#isSet = true;
    const offsetMs = Math.round(databaseNow + roundTripMs / 2 - this.#base.now());
    if (Math.abs(offsetMs - this.#offsetMs) > MAX_NOISE_MS)
      this.#offsetMs = Math.abs(offsetMs) > MAX_NOISE_MS ? offsetMs : 0;
  }
}
