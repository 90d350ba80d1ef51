/**
 * Which shards this worker owns, and whether its lease on them is valid right now.
 *
 *   register ──▶ renew the lease every heartbeat ──▶ take free shards up to our share, give up the surplus
 *                  │ no answer in time       the lease expires by itself: nothing is sent
 *                  │ session lost            the lease ends at once; connect and renew again
 *                  └ declared dead           all shards are lost; register again under a new id
 *
 * The lease is a time on the monotonic clock, counted from before the renewal was sent. It is checked inline before
 * every request, never by a timer: a process that was stopped for a while finds it expired when it continues.
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { newId } from '../domain/ids.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { OwnershipSession, OwnershipStore, StoreFacts, TakenShard } from '../ports/ownership-store.ts';

/** Increase it when workers of two versions could misread each other's rows. */
export const WIRE_VERSION = 1;

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
  #beating: Promise<void> | null = null;
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

  /** The question before every request: do we own the shard, under a valid lease, and are we to keep it? */
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
    await this.#beat();
  }

  /** Gives up everything still owned and removes the worker. The lanes have been handed over before. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#beating;
    const session = this.#session;
    this.#session = null;
    this.#leaseExpiresAt = Number.NEGATIVE_INFINITY;
    if (session === null) return;
    // Best effort: if the store is away, the other workers notice that renewals have stopped.
    await session.unregister(this.#workerId).catch(() => {});
    session.close();
  }

  /** From now on no shard is taken and nothing may be sent. Returns the shards that are owned, to be handed over. */
  async beginStop(): Promise<number[]> {
    this.#stopping = true;
    await this.#beating;
    // The renewal says that we are stopping, so that the others take a larger share.
    if (this.#session !== null && !this.#stopped) await this.#beat();
    const held = [...this.#epochs.keys()];
    for (const shard of held) this.#givingUp.add(shard);
    return held;
  }

  /** Frees shards that have no request on the wire any more, for any worker to take. */
  async release(shards: readonly number[]): Promise<void> {
    const ours = shards.filter((shard) => this.#epochs.has(shard));
    for (const shard of ours) {
      this.#epochs.delete(shard);
      this.#givingUp.delete(shard);
    }
    const session = this.#session;
    if (ours.length === 0 || session === null) return;
    try {
      await session.releaseShards(this.#workerId, ours);
    } catch (error) {
      this.#options.onProblem('release shards', error);
    }
  }

  /** Shards were freed: renew and take now instead of at the next heartbeat. */
  hurry(): void {
    if (this.#beating !== null || this.#stopped || this.#stopping) return;
    this.#cancelTimer?.();
    void this.#beat();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(this.#options.heartbeatMs, () => void this.#beat());
  }

  #beat(): Promise<void> {
    this.#beating ??= this.#renewLease().finally(() => {
      this.#beating = null;
      this.#schedule();
    });
    return this.#beating;
  }

  async #renewLease(): Promise<void> {
    const { clock, leaseMs, onProblem } = this.#options;
    try {
      const session = this.#session ?? (await this.#connect());
      const sentAt = clock.monotonic();
      const renewal = await session.renew(this.#workerId, { stopping: this.#stopping });
      if (renewal === null) return this.#startOver();
      const held = new Map(renewal.shards.map(({ shard, epoch }) => [shard, epoch]));
      this.#dropShards(
        [...this.#epochs].filter(([shard, epoch]) => held.get(shard) !== epoch).map(([shard]) => shard),
      );
      this.#noticeStoreClockStep(renewal.now);
      this.#leaseExpiresAt = sentAt + leaseMs;
      this.#lastRenewalAt = sentAt;
      const roundTripMs = clock.monotonic() - sentAt;
      for (const listener of this.#listeners) listener.onFacts?.(renewal, roundTripMs);
      // A lost answer left us the owner of shards that we do not work on: taken unnoticed, or not released.
      const forgotten = [...held.keys()].filter((shard) => !this.#epochs.has(shard));
      if (forgotten.length > 0) await session.releaseShards(this.#workerId, forgotten);
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

  /** Other workers declared this one dead, because it was stopped or cut off for too long. */
  #startOver(): void {
    this.#dropShards([...this.#epochs.keys()]);
    this.#disconnect();
    this.#workerId = newId(this.#options.clock.now());
    this.#options.onProblem('keep its shards: other workers took them over', null);
  }

  async #connect(): Promise<OwnershipSession> {
    const { store, workerName } = this.#options;
    const registration = { id: this.#workerId, name: workerName, wireVersion: WIRE_VERSION };
    this.#session = await store.connect(registration, (error) => {
      this.#options.onProblem('keep the session that holds its lease', error);
      this.#disconnect();
    });
    return this.#session;
  }

  /** Ends the lease: without the session its lock is gone, and others may act on that. */
  #disconnect(): void {
    this.#leaseExpiresAt = Number.NEGATIVE_INFINITY;
    this.#session?.close();
    this.#session = null;
  }
}
