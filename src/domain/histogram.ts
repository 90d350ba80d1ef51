/**
 * Histograms of durations, in buckets on a logarithmic scale: four per octave. The histogram of a day is the sum of the
 * histograms of its minutes. A percentile is the middle of its bucket, so it is off by a factor of at most 2^(1/8),
 * that is 9.1 %. Below a millisecond it is off by at most half a millisecond.
 */
const PER_OCTAVE = 4;
/** Up to 2^31 ms, more than three weeks, because a delivery may be retried for days. */
export const HISTOGRAM_BUCKETS = 31 * PER_OCTAVE + 1;
/** The largest error of a percentile, as a fraction of the true value. */
export const PERCENTILE_ERROR = 2 ** (1 / (2 * PER_OCTAVE)) - 1;

/** Bucket 0 is below a millisecond. Bucket n starts at 2^((n-1)/4) ms. */
export function bucketOf(ms: number): number {
  if (ms < 1) return 0;
  return Math.min(HISTOGRAM_BUCKETS - 1, Math.floor(Math.log2(ms) * PER_OCTAVE) + 1);
}

const middleOf = (bucket: number): number => (bucket === 0 ? 0.5 : 2 ** ((bucket - 0.5) / PER_OCTAVE));

/** Returns the smallest value that the fraction `p` of all values does not exceed. Null: there are no values. */
export function percentileOf(counts: ArrayLike<number>, p: number): number | null {
  let total = 0;
  for (let i = 0; i < counts.length; i += 1) total += counts[i]!;
  if (total === 0) return null;
  let left = Math.max(1, Math.ceil(total * p));
  for (let i = 0; i < counts.length; i += 1) {
    left -= counts[i]!;
    if (left <= 0) return middleOf(i);
  }
  return middleOf(counts.length - 1);
}

export function addCounts(to: number[], from: ArrayLike<number>): void {
  for (let i = 0; i < from.length; i += 1) to[i] = (to[i] ?? 0) + from[i]!;
}

/** Extends the array as needed: most endpoints use few buckets. */
export function increment(counts: number[], index: number, by = 1): void {
  while (counts.length <= index) counts.push(0);
  counts[index]! += by;
}
