/**
 * Which worker owns which shard. Correctness rests on time alone: a worker sends only while its last renewal is younger
 * than `leaseMs`, and the store gives its shards to another worker only after that time has passed on the store's
 * clock. A session lock lets the store notice a dead worker sooner. It never proves ownership.
 */
import type { Uuid } from '../domain/ids.ts';

export interface WorkerRegistration {
  readonly id: Uuid;
  readonly name: string;
  readonly wireVersion: number;
}

export interface OwnedShard {
  readonly shard: number;
  /** Grows with every change of ownership. */
  readonly epoch: number;
}

export interface TakenShard extends OwnedShard {
  /** How many workers died while they owned this shard, within the crash window. */
  readonly crashes: number;
}

/** Facts that the engine needs often. Every renewal returns them. */
export interface StoreFacts {
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: number;
  /** The current version of the endpoints. */
  readonly endpointVersion: number;
  /** The highest acceptance number that was assigned so far. */
  readonly lastSeq: number;
}

export interface Renewal extends StoreFacts {
  readonly shards: readonly OwnedShard[];
  /**
   * Marks this renewal in the store. Later renewals of the worker have higher marks unless the store's clock goes
   * back.
   */
  readonly mark: number;
  /**
   * The mark that the store had before. If it is lower than that of the last renewal, the store was set back to an
   * earlier state.
   */
  readonly previousMark: number;
}

export interface OwnershipTimes {
  /** A worker may send for this long after it requested its last renewal. */
  readonly leaseMs: number;
  /** After this time without a renewal a worker is dead, even if its session is alive. */
  readonly deadAfterMs: number;
}

/** One worker's connection to the store. Its session lock ends with it. */
export interface OwnershipSession {
  /** Renews the lease. Null: other workers declared this one dead; it owns nothing and must register under a new id. */
  renew(workerId: Uuid, options: { readonly stopping: boolean }): Promise<Renewal | null>;

  /**
   * Removes workers whose lease has ended and frees their shards. Returns one entry per freed shard. A renewal in the
   * future (the store's clock stepped back) counts as a renewal of now.
   */
  removeDeadWorkers(
    workerId: Uuid,
    times: OwnershipTimes,
  ): Promise<readonly { readonly worker: string; readonly shard: number }[]>;

  /** Takes free shards up to this worker's fair share. */
  takeShards(workerId: Uuid, crashWindowMs: number): Promise<readonly TakenShard[]>;

  /** How many shards the worker holds beyond its fair share. */
  countSurplusShards(workerId: Uuid): Promise<number>;

  /** Frees these shards if the worker still owns them, and tells the other workers. */
  releaseShards(workerId: Uuid, shards: readonly number[]): Promise<void>;

  /** Removes the worker, frees all its shards and tells the other workers. */
  unregister(workerId: Uuid): Promise<void>;

  close(): void;
}

export interface OwnershipStore {
  /** Opens a session and registers the worker in it. `onLost` is called once if the session breaks later. */
  connect(worker: WorkerRegistration, onLost: (error: unknown) => void): Promise<OwnershipSession>;

  /** Reads the facts without a renewal, for processes that own no shards. */
  readFacts(): Promise<StoreFacts>;

  /**
   * Identifies the history of the store: another value after a failover, or a restore to an earlier time, even if
   * nothing was lost. Null: the store cannot tell.
   */
  readTimeline(): Promise<string | null>;
}
