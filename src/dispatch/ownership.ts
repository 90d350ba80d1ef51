/**
 * Which shards this worker owns, and whether its lease on them is valid right now.
 *
 *   register ──▶ renew the lease every heartbeat ──▶ take free shards up to our share, give up the surplus
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
import type { OwnershipSession, OwnershipStore, StoreFacts, TakenShard } from '../ports/ownership-store.ts';

/**
 * Increase it when workers of two versions could misread each other's rows. Workers of version 1 record the values of custom
 * headers with attempts, and send notices as if notifiers were endpoints.
 */
export const WIRE_VERSION = 2;

/** The store's clock and ours do not run at the same rate. */
const MAX_CLOCK_DRIFT_MS = 200;

export interface OwnershipListener {
  /** This worker owns these shards from now on. */
  onShardsTaken?(shards: readonly TakenShard[]): void;
  /** This worker no longer owns these shards: drop everything that belongs to them. */
  onShardsLost?(shards: readonly number[]): void;
  /** Other workers should have these shards: call `release` once none of their requests is on the wire. */
  onShardsSurplus?(shards: readonly number[]): void;
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
  readonly onProblem: (what: string, error: unknown) => void;
}

export class Ownership implements Service {
  readonly workerName: string;
  readonly #options: OwnershipOptions;
  readonly #listeners: OwnershipListener[] = [];
  readonly #epochs = new Map<number, number>();
  readonly #givingUp = new Set<number>();
  #workerId: Uuid;
  #session: OwnershipSession | null = null;
  #leaseExpiresAt = Number.NEGATIVE_INFINITY;
  #lastRenewalAt = Number.NEGATIVE_INFINITY;
  #storeNow = Number.NaN;
  #mayRemoveDeadFrom = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #renewing: Promise<void> | null = null;
  /** The mark of the last renewal of this id. */
  #mark = Number.NEGATIVE_INFINITY;
  #isStoreReplaced = false;
  #stopping = false;
  #stopped = false;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.workerName = options.workerName;
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
    if (this.#cancelTimer !== null || this.#stopped) return;
    await this.#renewAndSchedule();
  }

  /** Frees all shards that are still owned and removes the worker. Call `beginStop` and hand the shards over first. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
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
    if (this.#session !== null && !this.#stopped) await this.#renewAndSchedule();
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
    if (this.#renewing !== null || this.#stopped || this.#stopping) return;
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
    if (this.#stopped) return;
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
      const renewal = await session.renew(this.#workerId, { stopping: this.#stopping });
      if (renewal === null) return this.#startOver();
      if (renewal.previousMark < this.#mark) return await this.#onRewound();
      this.#mark = renewal.mark;
      const stored = new Map(renewal.shards.map(({ shard, epoch }) => [shard, epoch]));
      this.#dropShards(
        [...this.#epochs].filter(([shard, epoch]) => stored.get(shard) !== epoch).map(([shard]) => shard),
      );
      this.#noticeStoreClockStep(renewal.now);
      this.#leaseExpiresAt = sentAt + leaseMs;
      this.#lastRenewalAt = sentAt;
      const roundTripMs = clock.monotonic() - sentAt;
      for (const listener of this.#listeners) listener.onFacts?.(renewal, roundTripMs);
      // After a lost answer the store may list shards that this worker does not know of: release them.
      const unknownShards = [...stored.keys()].filter((shard) => !this.#epochs.has(shard));
      if (unknownShards.length > 0) await session.releaseShards(this.#workerId, unknownShards);
      await this.#balance(session);
    } catch (error) {
      onProblem('renew the lease on its shards', error);
      this.#disconnect();
    }
  }

  /**
   * After a forward step of the store's clock every other worker looks dead until it renews. The step is certain if the
   * store counted more time than has passed here since before the previous renewal was sent.
   */
  #noticeStoreClockStep(storeNow: number): void {
    const { clock, leaseMs } = this.#options;
    const steppedMs = storeNow - this.#storeNow - (clock.monotonic() - this.#lastRenewalAt);
    if (steppedMs > MAX_CLOCK_DRIFT_MS) this.#mayRemoveDeadFrom = clock.monotonic() + 2 * leaseMs;
    this.#storeNow = storeNow;
  }

  async #removeDeadWorkers(session: OwnershipSession): Promise<void> {
    const { clock, leaseMs, deadAfterMs } = this.#options;
    if (clock.monotonic() < this.#mayRemoveDeadFrom) return;
    const removed = await session.removeDeadWorkers(this.#workerId, { leaseMs, deadAfterMs });
    if (removed.length === 0) return;
    const workers = [...new Set(removed.map(({ worker }) => worker))];
    for (const listener of this.#listeners) listener.onDeadWorkersRemoved?.(workers, removed.length);
  }

  async #balance(session: OwnershipSession): Promise<void> {
    const { crashWindowMs } = this.#options;
    await this.#removeDeadWorkers(session);
    if (this.#stopping) return;
    const taken = await session.takeShards(this.#workerId, crashWindowMs);
    for (const { shard, epoch } of taken) this.#epochs.set(shard, epoch);
    if (taken.length > 0) for (const listener of this.#listeners) listener.onShardsTaken?.(taken);
    const surplus = (await session.countSurplusShards(this.#workerId)) - this.#givingUp.size;
    if (surplus > 0)
      this.#giveUp([...this.#epochs.keys()].filter((shard) => !this.#givingUp.has(shard)).slice(-surplus));
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
    const { store, workerName } = this.#options;
    const registration = { id: this.#workerId, name: workerName, wireVersion: WIRE_VERSION };
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
