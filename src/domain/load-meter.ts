/**
 * Measures the load of this process: how late its timers fire, and how long its commits take. Both are medians of the last
 * values, so that a single pause or a slow commit has no effect. If the database does not answer at all, there are no new
 * values.
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
/** How many values the median of the delays is taken from. */
const DELAY_VALUES = 5;
/** Fewer than delays: commits follow each other, so it would take too long to see five slow ones. */
const COMMIT_VALUES = 3;
/** Older commits say nothing about the database now. Long enough for three commits that take ten seconds each. */
const COMMIT_AGE_MS = 30_000;

export class LoadMeter {
  readonly #options: LoadMeterOptions;
  readonly #delays: number[] = [];
  readonly #commits: { readonly at: number; readonly tookMs: number }[] = [];
  #isStarted = false;
  #unusedSamples = 0;
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
      loopDelayMs: medianOf(this.#delays, DELAY_VALUES),
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
    if (this.#cancelTimer === null && this.#isStarted) this.#sampleLater();
  }

  /** Call this after each commit. */
  recordCommit(tookMs: number): void {
    this.#commits.push({ at: this.#options.clock.monotonic(), tookMs });
    if (this.#commits.length > COMMIT_VALUES) this.#commits.shift();
  }

  #sampleLater(): void {
    const { clock } = this.#options;
    const expectedAt = clock.monotonic() + SAMPLE_MS;
    this.#cancelTimer = clock.after(SAMPLE_MS, () => this.#sample(clock.monotonic() - expectedAt));
  }

  #sample(delayMs: number): void {
    const { onSample, mustGoOn } = this.#options;
    this.#delays.push(Math.max(0, delayMs));
    if (this.#delays.length > DELAY_VALUES) this.#delays.shift();
    onSample?.(this.load);
    this.#unusedSamples += 1;
    if (this.#unusedSamples < UNUSED_SAMPLES || mustGoOn?.() === true) return this.#sampleLater();
    this.#cancelTimer = null;
    this.#delays.length = 0;
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
