/** The rows of Kafka partitions, their readers and their parked records. */
import type { Uuid } from '../domain/ids.ts';
import type { PartitionMark } from '../ports/event-store.ts';
import type { KafkaPartitionName, ParkedRecord, StoredParkedRecord } from '../ports/kafka-store.ts';

export interface PartitionRow extends KafkaPartitionName {
  readonly id: number;
  readonly cluster: string;
  owner: Uuid | null;
  epoch: number;
  position: bigint;
  /** Offsets above `position` that are stored already. */
  done: readonly bigint[];
}

export interface ConsumerRow {
  readonly cluster: string;
  readonly topicIds: readonly string[];
  renewedAt: number;
}

export interface ParkedRow extends StoredParkedRecord {
  readonly partitionId: number;
}

export class KafkaTables {
  /** In the order of their ids. */
  readonly partitions: PartitionRow[] = [];
  readonly consumers = new Map<Uuid, ConsumerRow>();
  /** By `seq`, in its order. */
  readonly parked = new Map<string, ParkedRow>();
  readonly awaitedTopics = new Set<string>();
  /** When the deletion of all data of a tenant ended. */
  readonly deletedTenants = new Map<string, number>();
  #parkedSeq = 0;

  /** Returns the partition, if its ownership still has this epoch. */
  findOwned(id: number, epoch: string): PartitionRow | undefined {
    return this.partitions.find((row) => row.id === id && row.epoch === Number(epoch));
  }

  park(partitionId: number, record: ParkedRecord): void {
    for (const known of this.parked.values())
      if (known.id === record.id || (known.partitionId === partitionId && known.offset === record.offset))
        return;
    this.#parkedSeq += 1;
    const seq = String(this.#parkedSeq);
    this.parked.set(seq, { ...record, partitionId, seq });
  }

  setPosition(row: PartitionRow, position: bigint): void {
    row.position = position;
    row.done = row.done.filter((offset) => offset >= position);
  }

  /** Records what a commit has stored: the whole batch, or some offsets of it. */
  markStored(row: PartitionRow, stored: readonly bigint[], { upTo, batchEvents }: PartitionMark): void {
    if (stored.length === batchEvents) this.setPosition(row, BigInt(upTo));
    else row.done = [...row.done, ...stored];
  }

  clear(): void {
    this.partitions.length = 0;
    for (const table of [this.consumers, this.parked, this.awaitedTopics, this.deletedTenants]) table.clear();
  }
}

/** Returns true if a record at this offset is not stored yet. */
export const isUnstored = ({ position, done }: PartitionRow, offset: bigint): boolean =>
  offset >= position && !done.includes(offset);
