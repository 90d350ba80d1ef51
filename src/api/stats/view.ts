/** Figures under the same names for all tenants, for an endpoint, and for each point of a chart. */
import { Type } from 'typebox';
import { percentileOf } from '../../domain/histogram.ts';
import { timeOfId, type Uuid } from '../../domain/ids.ts';
import { invalidField } from '../../domain/problem.ts';
import { readTime } from '../../ingest/index.ts';
import {
  addTotals,
  type Bucket,
  HOUR,
  MINUTE,
  noTotals,
  QUARTER,
  type Resolution,
  type TimedTotals,
  type Totals,
} from '../../postgres/queries/stats.ts';
import { timeFilter } from '../http/pagination.ts';

/** How long one point of each window is, and how many points it has. */
const WINDOWS = {
  '1h': { seconds: MINUTE, points: 60 },
  '24h': { seconds: QUARTER, points: 96 },
  '7d': { seconds: HOUR, points: 168 },
} as const;
export type WindowName = keyof typeof WINDOWS;
export const windowNames = Object.keys(WINDOWS) as WindowName[];

export const WindowQuery = Type.Optional(
  Type.Enum(windowNames, {
    description:
      'A period up to now: 60 minutes, 96 quarters of an hour or 168 hours, of which the last is incomplete.',
  }),
);

export const StatsRange = {
  window: WindowQuery,
  since: timeFilter(
    'The start of the period, an RFC 3339 time at most 35 days ago. It replaces `window`. `from` and `bucket_seconds` of the answer say what was used.',
  ),
  until: timeFilter(
    'The end of the period, an RFC 3339 time. Without `since`, the period is the `window` that ends then.',
  ),
};

export interface Window extends Bucket {
  /** Null: from `since` to `until`. */
  readonly name: WindowName | null;
  readonly points: number;
  /** The end of the last bucket. */
  readonly before: number;
  /** The end of what is counted: now, or the end of the range. */
  readonly now: number;
}

/** The window that ends with the current bucket, which is incomplete. */
export function windowOf(name: WindowName, now: number): Window {
  const { seconds, points } = WINDOWS[name];
  const current = Math.floor(now / (seconds * 1000));
  const bucketMs = seconds * 1000;
  return {
    name,
    seconds,
    points,
    at: (current - points + 1) * bucketMs,
    before: (current + 1) * bucketMs,
    now,
  };
}

const HOUR_MS = 3_600_000;
/** Upkeep keeps hours for `POSTHORN_RETENTION_STATISTICS` days, but a range begins at most this long ago. */
const OLDEST_MS = 35 * 24 * HOUR_MS;
const QUARTERS_KEPT_MS = 26 * HOUR_MS;
/** Minutes may be kept for weeks. A longer range has longer points, so that the answer stays short. */
const MAX_MINUTES_MS = 24 * HOUR_MS;

/** The length of the points of a range, as fine as they are kept. */
function resolutionOf(start: number, end: number, now: number, minutesKeptMs: number): Resolution {
  if (start >= now - minutesKeptMs && end - start <= MAX_MINUTES_MS) return MINUTE;
  return start >= now - QUARTERS_KEPT_MS ? QUARTER : HOUR;
}

/** The whole buckets from `since` to `until`, as fine as they are kept. Throws `invalid` if the range is empty. */
export function windowBetween(
  since: number | null,
  until: number | null,
  name: WindowName,
  now: number,
  minutesKeptMs: number,
): Window {
  const end = Math.min(until ?? now, now);
  const { seconds: windowSeconds, points } = WINDOWS[name];
  const start = Math.max(since ?? end - windowSeconds * points * 1000, now - OLDEST_MS);
  if (start >= end)
    throw invalidField('since', 'must be before `until` and before now, and `until` within the last 35 days');
  const seconds = resolutionOf(start, end, now, minutesKeptMs);
  const bucketMs = seconds * 1000;
  const at = Math.floor(start / bucketMs) * bucketMs;
  const before = Math.ceil(end / bucketMs) * bucketMs;
  return { name: null, seconds, points: (before - at) / bucketMs, at, before, now: end };
}

interface RangeQuery {
  readonly window?: WindowName;
  readonly since?: string;
  readonly until?: string;
}

/** The window that a query asks for; 24 hours by default. `minutesKeptMs`: how long statistics by the minute are kept. */
export function readWindow(
  { window = '24h', since, until }: RangeQuery,
  now: number,
  minutesKeptMs: number,
): Window {
  if (since === undefined && until === undefined) return windowOf(window, now);
  return windowBetween(readTime('since', since), readTime('until', until), window, now, minutesKeptMs);
}

export function totalOf(series: readonly Totals[]): Totals {
  const total = noTotals();
  for (const totals of series) addTotals(total, totals);
  return total;
}

/** Null if `whole` is 0: without requests there is neither success nor failure. */
export const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((part / whole) * 1e4) / 1e4;

/**
 * Deliveries that were attempted and have not ended count as failing: as many as `failingNow`, or as many as were first
 * attempted in this time and have not ended in it, whichever is more.
 */
export const successRate = (
  { delivered, dead, firstTries, attempts }: Pick<Totals, 'delivered' | 'dead' | 'firstTries' | 'attempts'>,
  failingNow = 0,
): number | null =>
  share(delivered, Math.max(delivered + dead + failingNow, firstTries, Math.min(attempts, 1)));

export function percentiles(counts: readonly number[]) {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((p) => {
    const ms = percentileOf(counts, p);
    return ms === null ? null : Math.round(ms * 10) / 10;
  });
  return { p50: p50!, p95: p95!, p99: p99! };
}

export function showRates(total: Totals) {
  return {
    attempt_success_rate: share(total.successes, total.attempts),
    final_success_rate: share(total.delivered, total.delivered + total.dead),
    first_attempt_success_rate: share(total.tries[0] ?? 0, total.firstTries),
    dead_letter_rate: share(total.dead, total.delivered + total.dead),
    response_ms: percentiles(total.response),
    delivery_ms: percentiles(total.delivery),
    retry_distribution: total.tries,
  };
}

export function showWindow({ name, seconds, at, now }: Window) {
  return { window: name, from: new Date(at), to: new Date(now), bucket_seconds: seconds };
}

/** The age of an id in whole seconds. */
export const ageOf = (id: Uuid | null, now: number): number | null =>
  id === null ? null : Math.max(0, Math.round((now - timeOfId(id)) / 1000));

export const throughput = (total: Totals, { at, now }: Window): number =>
  Math.round((total.delivered / Math.max(1, (now - at) / 1000)) * 1e3) / 1e3;

/** Every point of the window, including those in which nothing happened. */
export function showSeries(series: readonly TimedTotals[], { at, seconds, points }: Window) {
  const found = new Map(series.map((totals) => [totals.at, totals]));
  return Array.from({ length: points }, (_, index) => {
    const time = at + index * seconds * 1000;
    const totals = found.get(time) ?? noTotals();
    const [response, delivery] = [percentiles(totals.response), percentiles(totals.delivery)];
    return {
      at: new Date(time),
      accepted: totals.accepted,
      attempts: totals.attempts,
      successes: totals.successes,
      failures: totals.failures,
      delivered: totals.delivered,
      dead: totals.dead,
      success_rate: successRate(totals),
      response_p50_ms: response.p50,
      response_p95_ms: response.p95,
      response_p99_ms: response.p99,
      delivery_p50_ms: delivery.p50,
      delivery_p95_ms: delivery.p95,
      delivery_p99_ms: delivery.p99,
    };
  });
}
