/**
 * Which process reads which Kafka partition, how far the partitions are read, and the parked records: rejected ones, and those that wait
 * for the limit of their tenant.
 * Ownership is by lease, but correctness does not rest on time: every write names the epoch of the ownership, and the store
 * refuses an older one.
 */
import type { Uuid } from '../domain/ids.ts';

export interface KafkaPartitionName {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
}

export interface NewKafkaPartition extends KafkaPartitionName {
  /** Where to start reading. */
  readonly position: string;
}

/**
 * What the owner of a partition must do with it. `drain`: store its waiting records only, because no process reads its topic any
 * more. `release`: give it to another process.
 */
export type PartitionRole = 'read' | 'drain' | 'release';

export interface OwnedPartition extends KafkaPartitionName {
  readonly id: number;
  readonly role: PartitionRole;
  readonly epoch: string;
  /** The next offset to read. */
  readonly position: string;
  /** Offsets above `position` that are stored already. */
  readonly done: readonly string[];
  /** Records of this partition that were read and wait to be stored. Counted up to 100. */
  readonly waiting: number;
}

/** What an owner reports about a partition. */
export interface PartitionReport {
  readonly id: number;
  readonly epoch: string;
  readonly logEnd: string | null;
  readonly pausedReason: string | null;
  /** True if Kafka has answered for the partition since the last report. */
  readonly hasAnswered: boolean;
}

export interface KafkaConsumerLease {
  readonly id: Uuid;
  readonly name: string;
  readonly cluster: string;
  /** The ids of the topics that this process reads. */
  readonly topicIds: readonly string[];
  /** A process that does not renew its lease for this long loses its partitions. */
  readonly leaseMs: number;
}

/** A record that was read and set aside: it was rejected, or waits to be stored. */
export interface ParkedRecord {
  /** The id of the event that it becomes. */
  readonly id: Uuid;
  readonly offset: string;
  readonly state: 'waiting' | 'rejected';
  readonly tenant: string | null;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[];
  readonly recordedAt: number;
  readonly reason: string | null;
}

export interface StoredParkedRecord extends ParkedRecord {
  readonly seq: string;
}

export interface Advance {
  readonly id: number;
  readonly epoch: string;
  /** The next offset to read. */
  readonly position: string;
  /** Records before it that are set aside. */
  readonly parked: readonly ParkedRecord[];
  /** How many records Kafka deleted before they were read. */
  readonly lost?: string | undefined;
}

export interface KafkaStore {
  /** Returns the names of the topics that were read in this cluster, and of those passed to `recordAwaitedTopics`. */
  listKnownTopics(cluster: string): Promise<ReadonlySet<string>>;
  /** Returns the next offset to store of each partition of a topic. Empty: the topic was never read. */
  readPositions(topic: string): Promise<ReadonlyMap<number, bigint>>;
  /** Records topics that do not exist yet. */
  recordAwaitedTopics(names: readonly string[]): Promise<void>;
  /** Adds partitions that are not known yet. Known ones keep their position. */
  addPartitions(cluster: string, partitions: readonly NewKafkaPartition[]): Promise<void>;
  /**
   * Renews the lease, takes free partitions up to the fair share, and those with waiting records whose topic nobody reads any more.
   * Returns all partitions that this process owns.
   */
  renewLease(
    lease: KafkaConsumerLease,
    reports: readonly PartitionReport[],
  ): Promise<readonly OwnedPartition[]>;
  /** Frees partitions, so that other processes can take them. */
  releasePartitions(consumerId: Uuid, ids: readonly number[]): Promise<void>;
  /** Removes the process and frees its partitions. */
  removeConsumer(consumerId: Uuid): Promise<void>;
  /** Moves the position and sets records aside, in one commit. Returns false if another process owns the partition. */
  advance(advance: Advance): Promise<boolean>;
  /** Returns when the deletion of all data of these tenants ended, by the store's clock. Others are missing. */
  readDeletedTenants(tenants: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Reads records of a partition that wait, in order. `exceptTenants`: tenants that must wait longer. */
  readWaiting(
    partitionId: number,
    options: { readonly max: number; readonly exceptTenants: readonly string[] },
  ): Promise<readonly StoredParkedRecord[]>;
  /** Records which tenant waiting records belong to. The mapping may have changed since they were set aside. */
  setWaitingTenants(rows: readonly { readonly seq: string; readonly tenant: string }[]): Promise<void>;
  /** Marks waiting records as rejected. */
  rejectWaiting(rows: readonly { readonly seq: string; readonly reason: string }[]): Promise<void>;
  /** Deletes waiting records whose tenant's data is being deleted. */
  deleteWaiting(seqs: readonly string[]): Promise<void>;
  /** Counts the waiting records of a partition by tenant. Key null: the tenant is unknown. */
  countWaiting(partitionId: number): Promise<ReadonlyMap<string | null, number>>;
  /** Counts the rejected records of a partition, up to `max`. */
  countRejected(partitionId: number, max: number): Promise<number>;
}
