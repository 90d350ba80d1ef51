/** Time is passed in, so that tests and the simulation can run weeks in milliseconds. */
export interface Clock {
  /** Wall clock, milliseconds since 1970. May jump. */
  now(): number;
  /** Never goes back; counts while the process is stopped by SIGSTOP. For deadlines and durations. */
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

/**
 * The database's clock, as far as it is known: the machine's own plus a correction. Ids and due times of all
 * processes are then of one clock, whatever their machines think of the time.
 */
export class DatabaseClock implements Clock {
  readonly #base: Clock;
  #offsetMs = 0;

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

  /** The database has just said what time it is there. Small differences are the way the answer took, not the clock. */
  heard(databaseNow: number): void {
    const offsetMs = Math.round(databaseNow - this.#base.now());
    if (Math.abs(offsetMs - this.#offsetMs) > 100) this.#offsetMs = Math.abs(offsetMs) > 100 ? offsetMs : 0;
  }
}
