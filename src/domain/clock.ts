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
