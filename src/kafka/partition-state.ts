/** What this process knows about a partition that it owns. */
import type { OwnedPartition, PartitionRole } from '../ports/kafka-store.ts';

export type PausedReason =
  /** Too many records wait for the limit of their tenant. */
  | 'overflow_full'
  /** Too many records are rejected. */
  | 'rejected_full'
  /** The batch at the position is too large when it is decompressed. */
  | 'batch_too_large'
  /** The store refuses to set records of this partition aside. */
  | 'records_refused'
  /** The position is beyond the end of the log, because the topic was truncated or restored from a backup. */
  | 'position_beyond_end';

export class PartitionState {
  readonly id: number;
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly epoch: string;
  role: PartitionRole;
  /** The next offset to read. */
  position: bigint;
  /** Offsets above the stored position that are stored already. */
  done: ReadonlySet<string>;
  /** True while records are fetched or stored. */
  isBusy = false;
  /** True: another process owns it. Nothing may be written any more. */
  isLost = false;
  /** True: this process has more than its share. It releases the partition when it is idle. */
  mustRelease = false;
  /** True: the stored position lags, and the store has a list of later offsets that are stored. */
  needsAdvance = false;
  /** True: a fetch that included this partition failed. It is fetched alone, so that a partition that cannot be read delays no other. */
  isSuspect = false;
  /** On the monotonic clock. */
  resumeAt = 0;
  pausedReason: PausedReason | null = null;
  logEnd: bigint | null = null;
  /** True if Kafka has answered for it since the last report. */
  hasAnswered = false;
  /** Records that are set aside and wait. */
  waiting: number;
  /** Tenants with such records: their next records wait behind them. */
  waitingTenants: ReadonlySet<string> = new Set();
  drainAt = 0;
  /** How often each waiting record has failed, by `seq`. */
  readonly failures = new Map<string, number>();
  /** Rejected records that are kept, counted up to the limit. Null: not counted yet. Operators may have removed some since. */
  rejected: number | null = null;

  constructor(owned: OwnedPartition) {
    this.id = owned.id;
    this.topic = owned.topic;
    this.topicId = owned.topicId;
    this.partition = owned.partition;
    this.epoch = owned.epoch;
    this.role = owned.role;
    this.position = BigInt(owned.position);
    this.done = new Set(owned.done);
    this.waiting = owned.waiting;
  }
}
