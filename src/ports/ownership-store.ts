/**
 * Which worker owns which shard, and in which shard a lane is. Correctness rests on time alone: a worker sends only while its
 * last renewal is younger than its lease, and another worker frees its shards only after it has seen the same renewal for
 * longer than that. Both use their own monotonic clocks. A session lock shows sooner that a worker is dead. It never
 * proves ownership.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';

export interface WorkerRegistration {
  readonly id: Uuid;
  readonly name: string;
  readonly wireVersion: number;
  /** The name of the region whose shards it takes. Null: the default region. */
  readonly region: string | null;
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

/** Another registered worker, as a renewal shows it. */
export interface OtherWorker {
  readonly id: Uuid;
  /** Identifies its last renewal: each one has another value. */
  readonly renewal: string;
  /** The time since its last renewal by the store's clock, which may be wrong. */
  readonly silentMs: number;
}

/** A worker whose lease has ended. */
export interface SilentWorker extends Pick<OtherWorker, 'id' | 'renewal'> {
  /** True if it has been silent for so long that it is dead, even if its session is alive. */
  readonly isOverdue: boolean;
}

/** Facts that the engine needs often. Every renewal returns them. */
export interface StoreFacts {
  /** The store's clock, in milliseconds since the epoch. */
  readonly now: number;
  /** The current version of the endpoints. */
  readonly endpointVersion: number;
  /** The highest acceptance number that was assigned so far. */
  readonly lastSeq: number;
  /** The highest number that a row of the outbox got so far. The transaction of the row may still be open. */
  readonly outboxSeq: number;
}

/**
 * Tells two sets of owned shards apart: a shard that is taken gets a higher epoch than all before it, so an exchange of
 * shards changes the sum.
 */
export interface ShardsDigest {
  readonly count: number;
  readonly sumOfEpochs: number;
}

/** The digest of the shards with these epochs. */
export function digestOf(epochs: Iterable<number>): ShardsDigest {
  let count = 0;
  let sumOfEpochs = 0;
  for (const epoch of epochs) {
    count += 1;
    sumOfEpochs += epoch;
  }
  return { count, sumOfEpochs };
}

export interface Renewal extends StoreFacts {
  /** The worker's shards. Null: they match the digest that the worker sent. The list rarely changes and would be most of the cost of a renewal. */
  readonly shards: readonly OwnedShard[] | null;
  /** The number of this renewal. Each renewal of the worker has a higher one. */
  readonly mark: number;
  /**
   * The mark that the store had before. If it is lower than that of the last renewal, the store was set back to an
   * earlier state.
   */
  readonly previousMark: number;
  /**
   * Events whose payload was expunged in the last two minutes while deliveries of them waited. One lease
   * after an expunge, no worker sends the payload any more.
   */
  readonly expungedEvents: readonly Uuid[];
  /** All other registered workers. */
  readonly others: readonly OtherWorker[];
  /**
   * True if no shard of the worker's region is free, and this worker holds no more than its fair share of it: there is nothing to
   * take or to give up.
   */
  readonly isBalanced: boolean;
  /** The numbers of the regions that have no worker, in order. Null: they were not requested. */
  readonly emptyRegions: readonly number[] | null;
}

export interface RenewalOptions {
  readonly stopping: boolean;
  /** The shards that the worker knows. Null: return the list in any case. */
  readonly known: ShardsDigest | null;
  /** True: return the regions that have no worker. */
  readonly listsEmptyRegions: boolean;
}

/** A lane that should be in another shard. `placement` is a fence: it changes with every change of region and with each move. */
export type PlacedLane = Pick<Endpoint, 'id' | 'placement'>;

/** One worker's connection to the store. Its session lock ends with it. */
export interface OwnershipSession {
  /** Renews the lease. Null: other workers declared this one dead; it owns nothing and must register under a new id. */
  renew(workerId: Uuid, options: RenewalOptions): Promise<Renewal | null>;

  /**
   * Removes those of these workers that have not renewed since and are overdue or have no session, and frees their shards.
   * Returns one entry per freed shard.
   */
  removeDeadWorkers(
    silent: readonly SilentWorker[],
  ): Promise<readonly { readonly worker: string; readonly shard: number }[]>;

  /**
   * Takes free shards of the worker's region up to its fair share. With `emptyRegion`: those of that region instead, if no
   * worker of it is registered, up to the same number.
   */
  takeShards(
    workerId: Uuid,
    crashWindowMs: number,
    emptyRegion: number | null,
  ): Promise<readonly TakenShard[]>;

  /** How many shards of its region the worker holds beyond its fair share. */
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

  /**
   * Moves lanes to their wanted shards, and raises the version of the endpoints. Leaves out those in a shard that belongs
   * to another worker, and those whose placement has changed.
   */
  moveLanes(workerId: Uuid, lanes: readonly PlacedLane[]): Promise<void>;

  /** Reads the facts without a renewal, for processes that own no shards. */
  readFacts(): Promise<StoreFacts>;

  /**
   * Identifies the history of the store: another value after a failover, or a restore to an earlier time, even if
   * nothing was lost. Null: the store cannot tell.
   */
  readTimeline(): Promise<string | null>;
}
