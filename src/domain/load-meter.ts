/**
 * Measures the load of this process: how late its timers fire, and how long its commits take. A single pause or a slow commit
 * has no effect. If the database does not answer at all, there are no new values.
 *
 * A process that is blocked for 300 ms at a time runs few timers, and most of them just after a block. So delays count by the
 * time that passed between two timers, not by the number of timers: the load is the delay that half of the last two seconds
 * had at least.
 *
 * While nobody uses the meter, it measures nothing: `use` starts the samples, and they end a while after the last use.
 */
import type { Clock } from './clock.ts';

/** 0: not enough values yet. */
export interface ProcessLoad {
  /** How late timers fire. */
  readonly loopDelayMs: number;
  /** How long commits take. */
  readonly commitMs: number;
}

export interface LoadMeterOptions {
  readonly clock: Clock;
  /** Called with the load after each sample. */
  readonly onSample?: (load: ProcessLoad) => void;
  /** Returns true if sampling must continue although nobody uses the meter. */
  readonly mustGoOn?: () => boolean;
}

export const NO_LOAD: ProcessLoad = { loopDelayMs: 0, commitMs: 0 };

const SAMPLE_MS = 100;
/** After this many samples without use, sampling stops. */
const UNUSED_SAMPLES = 100;
/**
 * How often timers are checked. A timer is late by the rest of a block, so a block of 300 ms shows as 280 ms or more. With one timer
 * per sample it would show as 200 ms, below the usual limit.
 */
const CHECK_MS = 20;
/** The time that delays are counted in. */
const DELAY_WINDOW_MS = 2_000;
/** One delay counts for at most this much of the window, so that two pauses never fill half of it, however long they are. */
const MAX_WEIGHT_MS = 450;
/** How many commits the median is taken from. A few are enough, because commits follow each other. */
const COMMIT_VALUES = 3;
/** Older commits say nothing about the database now. Long enough for three commits that take ten seconds each. */
const COMMIT_AGE_MS = 30_000;

export class LoadMeter {
  readonly #options: LoadMeterOptions;
  readonly #delays = new RecentDelays();
  readonly #commits: { readonly at: number; readonly tookMs: number }[] = [];
  #isStarted = false;
  #unusedSamples = 0;
  /** When the last sample was taken, and the last timer fired. */
  #sampledAt = 0;
  #checkedAt = 0;
  #cancelTimer: (() => void) | null = null;

  constructor(options: LoadMeterOptions) {
    this.#options = options;
  }

  /** The load of a process that does nothing is unknown, and counts as none. */
  get load(): ProcessLoad {
    if (this.#cancelTimer === null) return NO_LOAD;
    const since = this.#options.clock.monotonic() - COMMIT_AGE_MS;
    while (this.#commits.length > 0 && this.#commits[0]!.at < since) this.#commits.shift();
    return {
      loopDelayMs: this.#delays.usual,
      commitMs: medianOf(
        this.#commits.map(({ tookMs }) => tookMs),
        COMMIT_VALUES,
      ),
    };
  }

  start(): void {
    this.#isStarted = true;
  }

  stop(): void {
    this.#isStarted = false;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** Call this whenever the load matters. */
  use(): void {
    this.#unusedSamples = 0;
    if (this.#cancelTimer !== null || !this.#isStarted) return;
    this.#sampledAt = this.#options.clock.monotonic();
    this.#checkLater();
  }

  /** Call this after each commit. */
  recordCommit(tookMs: number): void {
    this.#commits.push({ at: this.#options.clock.monotonic(), tookMs });
    if (this.#commits.length > COMMIT_VALUES) this.#commits.shift();
  }

  #checkLater(): void {
    const { clock } = this.#options;
    this.#checkedAt = clock.monotonic();
    this.#cancelTimer = clock.after(CHECK_MS, () => this.#check());
  }

  #check(): void {
    const now = this.#options.clock.monotonic();
    const passedMs = now - this.#checkedAt;
    this.#delays.add(Math.max(0, passedMs - CHECK_MS), passedMs);
    if (now - this.#sampledAt < SAMPLE_MS) return this.#checkLater();
    const { onSample, mustGoOn } = this.#options;
    this.#sampledAt = now;
    onSample?.(this.load);
    this.#unusedSamples += 1;
    if (this.#unusedSamples < UNUSED_SAMPLES || mustGoOn?.() === true) return this.#checkLater();
    this.#cancelTimer = null;
    this.#delays.clear();
  }
}

/** The delays of the last two seconds, each with the time that it stands for. */
class RecentDelays {
  readonly #values: { readonly delayMs: number; readonly weightMs: number }[] = [];
  #totalMs = 0;

  add(delayMs: number, passedMs: number): void {
    const weightMs = Math.min(passedMs, MAX_WEIGHT_MS);
    this.#values.push({ delayMs, weightMs });
    this.#totalMs += weightMs;
    while (this.#totalMs - this.#values[0]!.weightMs >= DELAY_WINDOW_MS)
      this.#totalMs -= this.#values.shift()!.weightMs;
  }

  clear(): void {
    this.#values.length = 0;
    this.#totalMs = 0;
  }

  /** The median delay, weighted by time. 0 if less than half of the window is filled. */
  get usual(): number {
    let weightMs = 0;
    for (const value of this.#values.toSorted((a, b) => b.delayMs - a.delayMs)) {
      weightMs += value.weightMs;
      if (weightMs >= DELAY_WINDOW_MS / 2) return value.delayMs;
    }
    return 0;
  }
}

/** Returns the larger of each value. */
export const worseLoad = (a: ProcessLoad, b: ProcessLoad): ProcessLoad => ({
  loopDelayMs: Math.max(a.loopDelayMs, b.loopDelayMs),
  commitMs: Math.max(a.commitMs, b.commitMs),
});

/** Returns 0 if there are not enough values. */
function medianOf(values: readonly number[], minValues: number): number {
  if (values.length < minValues) return 0;
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
