/**
 * Rate limits that all processes share. Each process leases tokens from Redis in blocks and takes from them in memory, so
 * that a request costs no round trip and never waits for Redis.
 *
 *   leased      leased tokens are left: take them. With less than half a block left, lease the next block
 *   on credit   no leased token is left, and Redis has not reported an empty bucket: take anyway, within what the limit
 *               allows one process, and report it with the next lease
 *   empty       Redis granted fewer tokens than were wanted: refuse until the bucket can have a block again, then lease
 *   alone       Redis is unavailable, slow or fails: this process applies the limit by itself, as without Redis
 *
 * In every state a process takes at most what the limit allows one process. It returns tokens that it did not use within a
 * second with the next lease. After ten seconds it drops them, because the bucket has been refilled since.
 */
import { createHmac } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import type { RateLimit } from '../domain/endpoint.ts';
import { TokenBucket } from '../domain/token-bucket.ts';
import type { RateBucket, RateBuckets } from '../ports/rate-limits.ts';
import { type Lease, leaseTokens } from './lease-script.ts';
import { type RedisLink, RedisUnavailableError } from './link.ts';

export interface LeasedBucketsOptions {
  readonly link: Pick<RedisLink, 'run' | 'isUsable'>;
  /** The prefix of all keys: unique to the deployment, and the same in all its processes. */
  readonly prefix: string;
  /** Hashes the names of keys, so that tenant names are not readable in Redis. */
  readonly hashKey: Buffer;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
  /** For tests with virtual time. Default: the time of Redis. */
  readonly nowMs?: () => number;
}

/** A block is what the limit allows in this time. */
const BLOCK_SECONDS = 0.1;
const UNUSED_MS = 1_000;
const RETURNED_WITHIN_MS = 10_000;
/** How long to work without Redis after an error, such as a missing permission. */
const HOLD_OFF_MS = 1_000;

export class LeasedBuckets implements RateBuckets {
  /** How often this process decided alone, because Redis was not usable. */
  fallBacks = 0;
  readonly #options: LeasedBucketsOptions;
  #holdOffUntil = Number.NEGATIVE_INFINITY;

  constructor(options: LeasedBucketsOptions) {
    this.#options = options;
  }

  create(name: string, limit: RateLimit): RateBucket {
    const { clock, prefix, hashKey } = this.#options;
    const hash = createHmac('sha256', hashKey).update(name).digest('base64url').slice(0, 22);
    const usable = { perSecond: limit.perSecond, burst: Math.max(1, limit.burst) };
    return new LeasedBucket({
      limit: usable,
      clock,
      isUsable: (now) => this.#isUsable(now),
      lease: (owed, wanted) => this.#lease({ key: `${prefix}:rate:${hash}`, limit: usable, owed, wanted }),
    });
  }

  #isUsable(now: number): boolean {
    const isUsable = now >= this.#holdOffUntil && this.#options.link.isUsable;
    if (!isUsable) this.fallBacks += 1;
    return isUsable;
  }

  async #lease(request: { key: string; limit: RateLimit; owed: number; wanted: number }): Promise<Lease> {
    const { link, clock, onProblem, nowMs } = this.#options;
    try {
      return await leaseTokens(link, { ...request, nowMs: nowMs?.() ?? null });
    } catch (error) {
      this.#holdOffUntil = clock.monotonic() + HOLD_OFF_MS;
      // The link itself reports that Redis is unavailable.
      if (!(error instanceof RedisUnavailableError)) onProblem('lease tokens from Redis', error);
      throw error;
    }
  }
}

interface LeasedBucketOptions {
  readonly limit: RateLimit;
  readonly clock: Clock;
  readonly isUsable: (now: number) => boolean;
  readonly lease: (owed: number, wanted: number) => Promise<Lease>;
}

class LeasedBucket implements RateBucket {
  readonly #options: LeasedBucketOptions;
  readonly #block: number;
  /** The limit that this process applies by itself. */
  readonly #own: TokenBucket;
  #leased = 0;
  #leasedAt = 0;
  /** Tokens taken on credit, minus unused tokens that are returned. */
  #owed = 0;
  #isLeasing = false;
  /**
   * The level of the bucket when Redis could not grant all wanted tokens. Null: the last lease was granted in full.
   */
  #empty: { readonly left: number; readonly at: number; readonly until: number } | null = null;
  #cancelRetry: (() => void) | null = null;

  constructor(options: LeasedBucketOptions) {
    this.#options = options;
    const { perSecond, burst } = options.limit;
    this.#block = Math.max(1, Math.min(Math.floor(perSecond * BLOCK_SECONDS), burst));
    this.#own = new TokenBucket(options.limit, options.clock.monotonic(), burst);
  }

  tryTake(now: number, count = 1): boolean {
    if (!this.#own.tryTake(now, count)) return false;
    if (!this.#options.isUsable(now)) return true;
    this.#returnUnused(now);
    if (this.#leased >= count) {
      this.#leased -= count;
      if (this.#leased < this.#block / 2 && !this.#isEmpty(now)) this.#lease(this.#block);
      return true;
    }
    if (this.#isEmpty(now)) {
      this.#own.giveBack(count);
      this.#leaseWhenFilled(now, count);
      return false;
    }
    this.#empty = null;
    this.#owed += count - this.#leased;
    this.#leased = 0;
    this.#lease(this.#block);
    return true;
  }

  msUntilNext(now: number, count = 1): number {
    const ownMs = this.#own.msUntilNext(now, count);
    const empty = this.#empty;
    if (empty === null || !this.#isEmpty(now)) return ownMs;
    const missing = count - this.#leased - empty.left;
    const filledAt = empty.at + (missing / this.#options.limit.perSecond) * 1000;
    return Math.max(ownMs, Math.ceil(Math.max(filledAt, empty.until) - now), 1);
  }

  /** True also while this process asks Redis whether there are tokens again. */
  #isEmpty(now: number): boolean {
    return this.#empty !== null && (now < this.#empty.until || this.#isLeasing);
  }

  #returnUnused(now: number): void {
    const ageMs = now - this.#leasedAt;
    if (this.#leased === 0 || ageMs <= UNUSED_MS) return;
    if (ageMs <= RETURNED_WITHIN_MS) this.#owed -= this.#leased;
    this.#leased = 0;
  }

  /** Leases tokens as soon as the bucket has some again, because a caller wants them. */
  #leaseWhenFilled(now: number, count: number): void {
    if (this.#isLeasing) return;
    this.#cancelRetry ??= this.#options.clock.after(this.#empty!.until - now, () => {
      this.#cancelRetry = null;
      this.#lease(Math.max(this.#block, count - this.#leased));
    });
  }

  #lease(wanted: number): void {
    if (this.#isLeasing) return;
    this.#isLeasing = true;
    const owed = this.#owed;
    this.#owed = 0;
    this.#options.lease(owed, wanted).then(
      (lease) => this.#onLeased(lease, wanted),
      // It is unknown whether Redis subtracted the owed tokens. They are few: those taken on credit during one round
      // trip.
      () => {
        this.#isLeasing = false;
      },
    );
  }

  #onLeased({ granted, left }: Lease, wanted: number): void {
    this.#isLeasing = false;
    const now = this.#options.clock.monotonic();
    this.#leased += granted;
    this.#leasedAt = now;
    const paid = Math.min(this.#leased, Math.max(0, this.#owed));
    this.#leased -= paid;
    this.#owed -= paid;
    const msUntilBlock = ((this.#block - left) / this.#options.limit.perSecond) * 1000;
    this.#empty = granted < wanted ? { left, at: now, until: now + Math.ceil(msUntilBlock) } : null;
    // These tokens were taken on credit during the round trip.
    if (this.#owed > 0) this.#lease(this.#block);
  }
}
