/**
 * Adaptive limits of one endpoint (DLV-3, docs/shaping.md). A slow receiver takes sockets and memory for long, and sending more
 * at the same time makes it slower. Pure: no clock, no I/O.
 *
 *   normal ──slow and busy round──▶ limited ──slow and busy round, with timeouts──▶ limited, deadline shortened
 *     ▲                              │   ▲                                                   │
 *     └─ three calm rounds at max ───┘   └──────────────── three calm rounds ────────────────┘
 *
 * Answers are judged in rounds of a fixed number. A round is
 *
 *   slow   if half of its answers took at least half of `timeout_ms`, or timed out
 *   busy   if nearly all of its requests were sent while the endpoint was at its limit
 *   calm   if it is not slow
 *
 * A round that is slow and busy halves the limit, but never below one. If the answers of the next round are as slow as before,
 * the halving did not help and is undone. A calm round raises the limit by one (AIMD), so the limit recovers by itself.
 * Requests that were sent before the last halving do not count, because they say nothing about it.
 *
 * Fast failures do not count either: the circuit breaker handles them.
 *
 * The deadline is shortened to 1.5 times the p99 of the last successes under the full deadline, at least two seconds. One
 * request in ten keeps the full deadline. Otherwise only fast successes would be seen, and the deadline would shrink
 * further and further. If such a request succeeds after the shortened deadline, the deadline is extended at once.
 *
 * The limit is stored with the endpoint's health, so that the next owner continues with it. The response times are not: the
 * next owner starts with the full deadline.
 */
import { bucketOf, HISTOGRAM_BUCKETS, percentileOf } from './histogram.ts';

/** `slow`: answers take too long. `timeouts`: in addition, requests time out, so the deadline is shorter. */
export const limitReasons = ['slow', 'timeouts'] as const;
export type LimitReason = (typeof limitReasons)[number];

export interface AdaptiveRecord {
  readonly inFlightLimit: number;
  /** Null: the endpoint's own `timeout_ms`. */
  readonly timeoutMs: number | null;
  readonly reason: LimitReason;
  /** When the endpoint was first limited. */
  readonly since: number;
}

/** `failure`: a failed answer other than a timeout, or a 429. `rejected`: another 4xx. */
export type AnswerKind = 'success' | 'rejected' | 'failure' | 'timeout';

export interface TimedAnswer {
  readonly kind: AnswerKind;
  readonly startedAt: number;
  readonly durationMs: number;
  /** True if the request had the endpoint's own deadline, not a shorter one. */
  readonly hadFullDeadline: boolean;
  /** True if the endpoint was at its in-flight limit at some time while the request was on the wire. */
  readonly wasFull: boolean;
}

export interface ConfiguredLimits {
  readonly maxInFlight: number;
  readonly timeoutMs: number;
}

/** A shorter round would mistake two slow answers for a slow receiver. */
export const MIN_ROUND = 10;
const SLOW_SHARE = 0.5;
const BUSY_SHARE = 0.8;
const TIMEOUT_SHARE = 0.1;
/**
 * This many calm rounds in a row restore the deadline, and end the limit at `max_in_flight`. With one, a limit at the edge
 * would begin and end all the time.
 */
export const CALM_ROUNDS = 3;
/** The deadline is shortened only after this many successes under the full deadline. */
export const MIN_SUCCESSES = 100;
const MIN_TIMEOUT_MS = 2_000;
const P99_FACTOR = 1.5;
/** While the deadline is shortened, one request in this many has the full one. */
export const FULL_DEADLINE_EVERY = 10;
/** A halving helps if the answers then take at most this share of the time before. */
const USEFUL_CHANGE = 0.9;
/** Answers that take longer than this share of the deadline are about to time out, so the limit is halved in any case. */
const NEAR_DEADLINE = 0.8;
/** After a halving that did not help, this many slow rounds pass before the next one. */
export const ROUNDS_UNTIL_NEXT_TRY = 20;

interface Round {
  answers: number;
  totalMs: number;
  slow: number;
  busy: number;
  timeouts: number;
}

export class AdaptiveLimits {
  #record: AdaptiveRecord | null;
  /** The record that the store has. */
  #stored: AdaptiveRecord | null;
  #round: Round | null = null;
  /** How many calm rounds followed each other, and how many of them were at `max_in_flight`. */
  #calmRounds = 0;
  #calmRoundsAtMax = 0;
  /** Answers to requests that were sent before this time do not count. Null: all count. */
  #countsFrom: number | null = null;
  #successes: RecentDurations | null = null;
  #requestsSinceShortened = 0;
  /** The limit and the mean duration before the last halving. */
  #beforeHalving: { readonly limit: number; readonly meanMs: number } | null = null;
  #roundsUntilNextTry = 0;

  constructor(stored: AdaptiveRecord | null = null) {
    this.#stored = stored;
    this.#record = stored?.timeoutMs == null ? stored : { ...stored, timeoutMs: null, reason: 'slow' };
  }

  /** Null: the endpoint has its configured limits. */
  get record(): AdaptiveRecord | null {
    return this.#record;
  }

  /** Infinity: only `max_in_flight` counts. */
  get inFlightLimit(): number {
    return this.#record?.inFlightLimit ?? Number.POSITIVE_INFINITY;
  }

  /** What has changed since the last `markStored`. Null: nothing. */
  get unstored(): { readonly before: AdaptiveRecord | null; readonly after: AdaptiveRecord | null } | null {
    return this.#record === this.#stored ? null : { before: this.#stored, after: this.#record };
  }

  /** Call this when the record is passed on to be stored. */
  markStored(): void {
    this.#stored = this.#record;
  }

  /** Forgets everything, because the endpoint was changed. The change of the record still has to be stored. */
  reset(): void {
    this.#record = null;
    this.#round = null;
    this.#calmRounds = 0;
    this.#calmRoundsAtMax = 0;
    this.#countsFrom = null;
    this.#successes = null;
    this.#beforeHalving = null;
    this.#roundsUntilNextTry = 0;
  }

  /** The deadline of the next request. Undefined: the full one. */
  nextTimeoutMs(): number | undefined {
    const timeoutMs = this.#record?.timeoutMs ?? null;
    if (timeoutMs === null) return undefined;
    this.#requestsSinceShortened += 1;
    return this.#requestsSinceShortened % FULL_DEADLINE_EVERY === 0 ? undefined : timeoutMs;
  }

  /** Returns true if the limits have changed. */
  recordAnswer(answer: TimedAnswer, configured: ConfiguredLimits, now: number): boolean {
    const before = this.#record;
    const { kind, durationMs } = answer;
    if (kind === 'success' && answer.hadFullDeadline) this.#recordSuccess(durationMs, configured);
    const isSlow = kind === 'timeout' || durationMs >= SLOW_SHARE * configured.timeoutMs;
    // The clock was set back.
    if (this.#countsFrom !== null && now < this.#countsFrom) this.#countsFrom = null;
    const isOld = this.#countsFrom !== null && answer.startedAt < this.#countsFrom;
    if (isOld || (kind === 'failure' && !isSlow)) return this.#record !== before;
    const limit = Math.min(this.inFlightLimit, configured.maxInFlight);
    this.#round ??= { answers: 0, totalMs: 0, slow: 0, busy: 0, timeouts: 0 };
    const round = this.#round;
    round.answers += 1;
    round.totalMs += durationMs;
    if (isSlow) round.slow += 1;
    if (kind === 'timeout') round.timeouts += 1;
    if (answer.wasFull) round.busy += 1;
    if (round.answers >= Math.max(MIN_ROUND, limit)) {
      this.#round = null;
      this.#endRound(round, limit, configured, now);
    }
    return this.#record !== before;
  }

  #recordSuccess(durationMs: number, { timeoutMs }: ConfiguredLimits): void {
    this.#successes ??= new RecentDurations();
    this.#successes.add(durationMs);
    const record = this.#record;
    // The shortened deadline may have cut off other requests that would have succeeded.
    if (record !== null && record.timeoutMs !== null && durationMs > record.timeoutMs)
      this.#record = withTimeout(record, boundedTimeout(P99_FACTOR * durationMs, timeoutMs));
  }

  #endRound(round: Round, limit: number, configured: ConfiguredLimits, now: number): void {
    const { answers, slow, busy } = round;
    if (2 * slow < answers) this.#onCalmRound(limit, configured);
    else if (busy >= BUSY_SHARE * answers) this.#onSlowRound(round, limit, configured, now);
  }

  #onSlowRound(round: Round, limit: number, { maxInFlight, timeoutMs }: ConfiguredLimits, now: number): void {
    const { answers, timeouts } = round;
    const before = this.#record;
    this.#calmRounds = 0;
    this.#calmRoundsAtMax = 0;
    const inFlightLimit = this.#chooseLimit(round, limit, timeoutMs);
    if (inFlightLimit !== limit) this.#countsFrom = now;
    // Lower the in-flight limit first. Shorten the deadline only if that did not help.
    const mayShorten = before !== null || maxInFlight === 1;
    const isShortened = before !== null && before.timeoutMs !== null;
    const shortened =
      mayShorten && (isShortened || timeouts >= TIMEOUT_SHARE * answers)
        ? this.#shortTimeout(timeoutMs)
        : null;
    if (inFlightLimit === maxInFlight && shortened === null) {
      this.#record = null;
      return;
    }
    const since = before?.since ?? now;
    const after = withTimeout({ inFlightLimit, timeoutMs: null, reason: 'slow', since }, shortened);
    if (before === null || !isSame(before, after)) this.#record = after;
  }

  /**
   * Returns half of the limit. If the answers did not get faster after the last halving, and are not about to time out, the receiver
   * is as slow with any number of requests. Then fewer of them only deliver less: the halving is undone, and not tried again
   * for a while.
   */
  #chooseLimit({ answers, totalMs, timeouts }: Round, limit: number, timeoutMs: number): number {
    const meanMs = totalMs / answers;
    const isTimingOut = timeouts >= TIMEOUT_SHARE * answers || meanMs > NEAR_DEADLINE * timeoutMs;
    const last = this.#beforeHalving;
    if (!isTimingOut && last !== null && meanMs > USEFUL_CHANGE * last.meanMs) {
      this.#beforeHalving = null;
      this.#roundsUntilNextTry = ROUNDS_UNTIL_NEXT_TRY;
      return Math.max(limit, last.limit);
    }
    if (!isTimingOut && this.#roundsUntilNextTry > 0) {
      this.#roundsUntilNextTry -= 1;
      return limit;
    }
    this.#beforeHalving = { limit, meanMs };
    return Math.max(1, Math.floor(limit / 2));
  }

  #onCalmRound(limit: number, { maxInFlight }: ConfiguredLimits): void {
    this.#beforeHalving = null;
    this.#roundsUntilNextTry = 0;
    const before = this.#record;
    if (before === null) return;
    this.#calmRounds += 1;
    if (limit === maxInFlight) this.#calmRoundsAtMax += 1;
    const timeoutMs = this.#calmRounds >= CALM_ROUNDS ? null : before.timeoutMs;
    const after = withTimeout({ ...before, inFlightLimit: Math.min(limit + 1, maxInFlight) }, timeoutMs);
    if (this.#calmRoundsAtMax >= CALM_ROUNDS) this.#record = null;
    else if (!isSame(before, after)) this.#record = after;
  }

  #shortTimeout(timeoutMs: number): number | null {
    const p99 = this.#successes?.p99(MIN_SUCCESSES) ?? null;
    return p99 === null ? null : boundedTimeout(P99_FACTOR * p99, timeoutMs);
  }
}

/** Returns null if the result would not be shorter than `timeoutMs`. */
function boundedTimeout(wantedMs: number, timeoutMs: number): number | null {
  const bounded = Math.max(MIN_TIMEOUT_MS, Math.ceil(wantedMs));
  return bounded < timeoutMs ? bounded : null;
}

const withTimeout = (record: AdaptiveRecord, timeoutMs: number | null): AdaptiveRecord => ({
  ...record,
  timeoutMs,
  reason: timeoutMs === null ? 'slow' : 'timeouts',
});

const isSame = (a: AdaptiveRecord, b: AdaptiveRecord): boolean =>
  a.inFlightLimit === b.inFlightLimit && a.timeoutMs === b.timeoutMs;

/** The last durations, as buckets of a histogram: one byte each, because there is one for every endpoint. */
class RecentDurations {
  static readonly #MAX = 256;
  #buckets = new Uint8Array(16);
  #count = 0;

  add(durationMs: number): void {
    const { length } = this.#buckets;
    if (this.#count === length && length < RecentDurations.#MAX) {
      const larger = new Uint8Array(2 * length);
      larger.set(this.#buckets);
      this.#buckets = larger;
    }
    this.#buckets[this.#count % this.#buckets.length] = bucketOf(durationMs);
    this.#count += 1;
  }

  /** Null if there are fewer than `min`. */
  p99(min: number): number | null {
    if (this.#count < min) return null;
    const counts = new Uint16Array(HISTOGRAM_BUCKETS);
    for (const bucket of this.#buckets.subarray(0, this.#count)) counts[bucket]! += 1;
    return percentileOf(counts, 0.99);
  }
}
