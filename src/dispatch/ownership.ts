/**
 * Which shards this worker owns, and whether its lease on them is valid right now.
 *
 *   register ──▶ renew the lease every heartbeat ──▶ take free shards of our region up to our share, give up the surplus
 *                  │ no answer in time       the lease expires, and nothing is sent
 *                  │ session lost            the lease ends immediately; connect and renew again
 *                  ├ declared dead           all shards are lost; register again under a new id
 *                  └ store replaced          give up all shards; register again under a new id
 *
 * The lease is a time on the monotonic clock, counted from before the renewal was sent. It is checked inline before
 * every request, never by a timer: a process that was stopped for a while finds it expired when it continues.
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { newId } from '../domain/ids.ts';
import type { Service } from '../domain/lifecycle.ts';
import { DEFAULT_REGION, regionOf } from '../domain/region.ts';
import {
  digestOf,
  type OtherWorker,
  type OwnershipSession,
  type OwnershipStore,
  type Renewal,
  type StoreFacts,
  type TakenShard,
} from '../ports/ownership-store.ts';
import { SilentWorkers } from './silent-workers.ts';

/**
 * Increase this when workers of two versions could misread each other's rows. Workers of version 1 record the values
 * of custom headers with attempts, and send notices as if notifiers were endpoints. Workers of version 2 do not know
 * regions.
 */
export const WIRE_VERSION = 3;

export interface OwnershipListener {
  /** This worker owns these shards from now on. */
  onShardsTaken?(shards: readonly TakenShard[]): void;
  /** This worker no longer owns these shards: drop everything that belongs to them. */
  onShardsLost?(shards: readonly number[]): void;
  /** Other workers should have these shards: call `release` once none of their requests is on the wire. */
  onShardsSurplus?(shards: readonly number[]): void;
  /** With each renewal, before its lease counts: do not send the payloads of these events. */
  onExpunged?(eventIds: readonly Uuid[]): void;
  /** After each renewal. `roundTripMs`: how long the answer took. */
  onFacts?(facts: StoreFacts, roundTripMs: number): void;
  /** The store was set back to an earlier state. This worker gives up its shards and takes them again. */
  onRewound?(): void;
  onDeadWorkersRemoved?(workers: readonly string[], shards: number): void;
}

export interface OwnershipOptions {
  readonly store: OwnershipStore;
  readonly workerName: string;
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly leaseMs: number;
  readonly deadAfterMs: number;
  readonly crashWindowMs: number;
  /** The region whose shards this worker takes. Null: the default region. */
  readonly region: string | null;
  /** After how long a worker of the default region takes the shards of a region without workers. Null: never. */
  readonly fallbackAfterMs: number | null;
  readonly onProblem: (what: string, error: unknown) => void;
}

export class Ownership implements Service {
  readonly workerName: string;
  readonly #options: OwnershipOptions;
  readonly #listeners: OwnershipListener[] = [];
  readonly #epochs = new Map<number, number>();
  readonly #givingUp = new Set<number>();
  /** Since when each region without workers has had none, on the monotonic clock. */
  readonly #emptySince = new Map<number, number>();
  readonly #silentWorkers: SilentWorkers;
  #workerId: Uuid;
  #session: OwnershipSession | null = null;
  #leaseExpiresAt = Number.NEGATIVE_INFINITY;
  #lastRenewalAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #renewing: Promise<void> | null = null;
  /** The mark of the last renewal of this id. */
  #mark = Number.NEGATIVE_INFINITY;
  /** The acceptance number that the last renewal returned. */
  #lastSeq = 0;
  #isStoreReplaced = false;
  #stopping = false;
  #isStopped = false;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.workerName = options.workerName;
    this.#silentWorkers = new SilentWorkers(options);
    this.#workerId = newId(options.clock.now());
  }

  addListener(listener: OwnershipListener): void {
    this.#listeners.push(listener);
  }

  get workerId(): Uuid {
    return this.#workerId;
  }

  get shardCount(): number {
    return this.#epochs.size;
  }

  get ownedShards(): Iterable<number> {
    return this.#epochs.keys();
  }

  /** Shards that this worker owns under a valid lease and is not giving up. */
  get keptShards(): number[] {
    if (!this.hasValidLease) return [];
    return [...this.#epochs.keys()].filter((shard) => !this.#givingUp.has(shard));
  }

  owns(shard: number): boolean {
    return this.#epochs.has(shard);
  }

  /** True if this worker will release the shard soon: start nothing more in it. */
  isGivingUp(shard: number): boolean {
    return this.#givingUp.has(shard);
  }

  epochOf(shard: number): number | undefined {
    return this.#epochs.get(shard);
  }

  /** True if this worker owns the shard under a valid lease and is not giving it up. Checked before every request. */
  maySend(shard: number): boolean {
    return this.#epochs.has(shard) && !this.#givingUp.has(shard) && this.hasValidLease;
  }

  get hasValidLease(): boolean {
    return this.#options.clock.monotonic() < this.#leaseExpiresAt;
  }

  /** Time since the last renewal. Infinity: there was none yet. */
  get msSinceRenewal(): number {
    return this.#options.clock.monotonic() - this.#lastRenewalAt;
  }

  async start(): Promise<void> {
    if (this.#cancelTimer !== null || this.#isStopped) return;
    await this.#renewAndSchedule();
  }

  /** Frees all shards that are still owned and removes the worker. Call `beginStop` and hand the shards over first. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#renewing;
    const session = this.#session;
    this.#session = null;
    this.#leaseExpiresAt = Number.NEGATIVE_INFINITY;
    if (session === null) return;
    // Best effort: if the store is unavailable, the other workers notice that renewals have stopped.
    await session.unregister(this.#workerId).catch(() => {});
    session.close();
  }

  /** Takes no more shards and allows no more requests. Returns the owned shards, which the caller hands over. */
  async beginStop(): Promise<number[]> {
    this.#stopping = true;
    await this.#renewing;
    // This renewal tells the store that we are stopping, so that the other workers take a larger share.
    if (this.#session !== null && !this.#isStopped) await this.#renewAndSchedule();
    const owned = [...this.#epochs.keys()];
    for (const shard of owned) this.#givingUp.add(shard);
    return owned;
  }

  /** Frees shards that have no request on the wire any more, for any worker to take. */
  async release(shards: readonly number[]): Promise<void> {
    const owned = shards.filter((shard) => this.#epochs.has(shard));
    for (const shard of owned) {
      this.#epochs.delete(shard);
      this.#givingUp.delete(shard);
    }
    const session = this.#session;
    if (owned.length === 0 || session === null) return;
    try {
      await session.releaseShards(this.#workerId, owned);
    } catch (error) {
      this.#options.onProblem('release shards', error);
    }
  }

  /** Renews the lease and takes free shards now instead of at the next heartbeat. Call this when shards were freed. */
  renewNow(): void {
    if (this.#renewing !== null || this.#isStopped || this.#stopping) return;
    this.#cancelTimer?.();
    void this.#renewAndSchedule();
  }

  /** The store was restored or replaced: what the lanes hold may not exist. They are read again under a new lease. */
  onStoreReplaced(): void {
    this.#isStoreReplaced = true;
    this.#leaseExpiresAt = Number.NEGATIVE_INFINITY;
    this.renewNow();
  }

  #scheduleRenewal(): void {
    if (this.#isStopped) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(
      this.#options.heartbeatMs,
      () => void this.#renewAndSchedule(),
    );
  }

  #renewAndSchedule(): Promise<void> {
    this.#renewing ??= this.#renewLease().finally(() => {
      this.#renewing = null;
      this.#scheduleRenewal();
    });
    return this.#renewing;
  }

  async #renewLease(): Promise<void> {
    const { clock, leaseMs, onProblem } = this.#options;
    try {
      if (this.#isStoreReplaced) await this.#leave();
      const session = this.#session ?? (await this.#connect());
      const sentAt = clock.monotonic();
      const renewal = await session.renew(this.#workerId, {
        stopping: this.#stopping,
        known: digestOf(this.#epochs.values()),
        listsEmptyRegions: this.#mayFallBack,
      });
      if (renewal === null) return this.#startOver();
      // The store lacks the last renewal: it was set back to an earlier state.
      if (renewal.previousMark < this.#mark)
        return await (this.#wasRemoved(renewal) ? this.#joinAgain() : this.#onRewound());
      this.#mark = renewal.mark;
      this.#lastSeq = renewal.lastSeq;
      const stored =
        renewal.shards === null
          ? this.#epochs
          : new Map(renewal.shards.map(({ shard, epoch }) => [shard, epoch]));
      this.#dropShards(
        [...this.#epochs].filter(([shard, epoch]) => stored.get(shard) !== epoch).map(([shard]) => shard),
      );
      const roundTripMs = clock.monotonic() - sentAt;
      if (renewal.expungedEvents.length > 0)
        for (const listener of this.#listeners) listener.onExpunged?.(renewal.expungedEvents);
      this.#leaseExpiresAt = sentAt + leaseMs;
      for (const listener of this.#listeners) listener.onFacts?.(renewal, roundTripMs);
      this.#lastRenewalAt = sentAt;
      // After a lost answer the store may list shards that this worker does not know of: release them.
      const unknownShards = [...stored.keys()].filter((shard) => !this.#epochs.has(shard));
      if (unknownShards.length > 0) await session.releaseShards(this.#workerId, unknownShards);
      const hasRemoved = await this.#removeDeadWorkers(session, renewal.others);
      if (!renewal.isBalanced || unknownShards.length > 0 || hasRemoved) await this.#balance(session);
      if (renewal.emptyRegions !== null) await this.#standIn(session, renewal.emptyRegions);
    } catch (error) {
      onProblem('renew the lease on its shards', error);
      this.#disconnect();
    }
  }

  async #removeDeadWorkers(session: OwnershipSession, others: readonly OtherWorker[]): Promise<boolean> {
    const { clock } = this.#options;
    const silent = this.#silentWorkers.observe(others, clock.monotonic(), clock.isSteady !== false);
    if (silent.length === 0) return false;
    const removed = await session.removeDeadWorkers(silent);
    if (removed.length === 0) return false;
    const workers = [...new Set(removed.map(({ worker }) => worker))];
    for (const listener of this.#listeners) listener.onDeadWorkersRemoved?.(workers, removed.length);
    return true;
  }

  async #balance(session: OwnershipSession): Promise<void> {
    if (this.#stopping) return;
    await this.#take(session, null);
    const surplus = await session.countSurplusShards(this.#workerId);
    const own = [...this.#epochs.keys()].filter((shard) => !this.#isStandIn(shard));
    const kept = own.filter((shard) => !this.#givingUp.has(shard));
    const givenUp = own.length - kept.length;
    if (surplus > givenUp) this.#giveUp(kept.slice(givenUp - surplus));
  }

  async #take(session: OwnershipSession, emptyRegion: number | null): Promise<void> {
    const taken = await session.takeShards(this.#workerId, this.#options.crashWindowMs, emptyRegion);
    for (const { shard, epoch } of taken) this.#epochs.set(shard, epoch);
    if (taken.length > 0) for (const listener of this.#listeners) listener.onShardsTaken?.(taken);
  }

  /** True if this worker takes the shards of regions without workers, after some time. */
  get #mayFallBack(): boolean {
    return this.#options.region === null && this.#options.fallbackAfterMs !== null;
  }

  /** True if the shard belongs to another region, for which this worker stands in. Only the default region does so. */
  #isStandIn(shard: number): boolean {
    return this.#options.region === null && regionOf(shard) !== DEFAULT_REGION;
  }

  /** Takes the shards of regions that have had no worker for long, and gives those back that have one again. */
  async #standIn(session: OwnershipSession, emptyRegions: readonly number[]): Promise<void> {
    const now = this.#options.clock.monotonic();
    for (const region of this.#emptySince.keys())
      if (!emptyRegions.includes(region)) this.#emptySince.delete(region);
    for (const region of emptyRegions) if (!this.#emptySince.has(region)) this.#emptySince.set(region, now);
    this.#giveUp(
      [...this.#epochs.keys()].filter(
        (shard) =>
          this.#isStandIn(shard) && !this.#givingUp.has(shard) && !emptyRegions.includes(regionOf(shard)),
      ),
    );
    if (this.#stopping) return;
    for (const [region, since] of this.#emptySince)
      if (now - since >= this.#options.fallbackAfterMs!) await this.#take(session, region);
  }

  #giveUp(shards: readonly number[]): void {
    if (shards.length === 0) return;
    for (const shard of shards) this.#givingUp.add(shard);
    for (const listener of this.#listeners) listener.onShardsSurplus?.(shards);
  }

  #dropShards(shards: readonly number[]): void {
    if (shards.length === 0) return;
    for (const shard of shards) {
      this.#epochs.delete(shard);
      this.#givingUp.delete(shard);
    }
    for (const listener of this.#listeners) listener.onShardsLost?.(shards);
  }

  /**
   * Gives up all shards and the worker's id. A replaced store may not know this worker, or may list other shards for
   * it.
   */
  async #leave(): Promise<void> {
    this.#isStoreReplaced = false;
    // Best effort: otherwise the store notices that renewals have stopped.
    await this.#session?.unregister(this.#workerId).catch(() => {});
    this.#forgetRegistration();
  }

  /**
   * True if other workers removed this one while it was disconnected, so that its new session registered it anew: no
   * renewal is counted yet, and no event that the store had is missing.
   */
  #wasRemoved({ previousMark, lastSeq }: Renewal): boolean {
    return previousMark === 0 && lastSeq >= this.#lastSeq;
  }

  async #joinAgain(): Promise<void> {
    this.#options.onProblem('keep the shards: other workers took them over', null);
    await this.#leave();
  }

  async #onRewound(): Promise<void> {
    for (const listener of this.#listeners) listener.onRewound?.();
    await this.#leave();
  }

  #forgetRegistration(): void {
    this.#mark = Number.NEGATIVE_INFINITY;
    this.#dropShards([...this.#epochs.keys()]);
    this.#disconnect();
    this.#workerId = newId(this.#options.clock.now());
  }

  /** Call this when other workers declared this one dead, because it was stopped or cut off for too long. */
  #startOver(): void {
    this.#forgetRegistration();
    this.#options.onProblem('keep the shards: other workers took them over', null);
  }

  async #connect(): Promise<OwnershipSession> {
    const { store, workerName, region } = this.#options;
    const registration = { id: this.#workerId, name: workerName, wireVersion: WIRE_VERSION, region };
    this.#session = await store.connect(registration, (error) => {
      this.#options.onProblem('keep the session of the lease', error);
      this.#disconnect();
    });
    return this.#session;
  }

  /** Ends the lease as well: the session lock is gone, so other workers may take the shards soon. */
  #disconnect(): void {
    this.#leaseExpiresAt = Number.NEGATIVE_INFINITY;
    this.#session?.close();
    this.#session = null;
  }
}
