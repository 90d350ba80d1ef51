/** A histogram in plain numbers: an observation costs a short loop and two additions, without a map lookup. */
export class Histogram {
  readonly bounds: readonly number[];
  /** Not cumulative; the last is for everything above the last bound. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    this.counts[bucket]! += 1;
    this.sum += value;
  }
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;

export const RESPONSE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 10, 15, 20, 30, 60,
];
/** From milliseconds to three days, the longest time of retries. */
export const LATENCY_SECONDS = [
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  10,
  30,
  2 * MINUTE,
  10 * MINUTE,
  HOUR,
  6 * HOUR,
  24 * HOUR,
  72 * HOUR,
];
export const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
export const BATCH_ITEMS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
export const ATTEMPTS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20];
