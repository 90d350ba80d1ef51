/**
 * Response times, counted in buckets on a logarithmic scale: four to an octave, so that a percentile is right to
 * about a tenth whatever its size, and hours add up to days by adding counts.
 */
const PER_OCTAVE = 4;
/** Up to 2^16 ms: more than any deadline. */
export const HISTOGRAM_BUCKETS = 16 * PER_OCTAVE + 1;

/** Bucket 0: below a millisecond. Bucket n: from 2^((n-1)/4) ms on. */
export function bucketOf(ms: number): number {
  if (ms < 1) return 0;
  return Math.min(HISTOGRAM_BUCKETS - 1, Math.floor(Math.log2(ms) * PER_OCTAVE) + 1);
}

const lowerBound = (bucket: number): number => (bucket === 0 ? 0 : 2 ** ((bucket - 1) / PER_OCTAVE));

/** The value below which the share `p` of all lies, or null if there are none. Within a bucket: evenly spread. */
export function percentileOf(counts: ArrayLike<number>, p: number): number | null {
  let total = 0;
  for (let i = 0; i < counts.length; i += 1) total += counts[i]!;
  if (total === 0) return null;
  let left = Math.max(1, total * p);
  for (let i = 0; i < counts.length; i += 1) {
    if (counts[i]! < left) {
      left -= counts[i]!;
      continue;
    }
    const low = lowerBound(i);
    return low + (lowerBound(i + 1) - low) * (left / counts[i]!);
  }
  return lowerBound(counts.length);
}

export function addCounts(to: number[], from: ArrayLike<number>): void {
  for (let i = 0; i < from.length; i += 1) to[i] = (to[i] ?? 0) + from[i]!;
}
