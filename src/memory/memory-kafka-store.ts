import type { Uuid } from '../domain/ids.ts';
import type { KafkaStore, OwnedPartition } from '../ports/kafka-store.ts';
import type { KafkaTables, ParkedRow, PartitionRow } from './kafka-tables.ts';
import type { MemoryStore } from './memory-store.ts';

const MAX_COUNTED_WAITING = 100;

export function createMemoryKafkaStore(store: MemoryStore): KafkaStore {
  const { kafka } = store;
  return {
    ...createLeases(store),
    ...createParking(kafka),
    async listKnownTopics(cluster) {
      const known = kafka.partitions.filter((row) => row.cluster === cluster);
      return new Set([...known.map(({ topic }) => topic), ...kafka.awaitedTopics]);
    },
    async readPositions(topic) {
      const newest = kafka.partitions.findLast((row) => row.topic === topic)?.topicId;
      const rows = kafka.partitions.filter((row) => row.topic === topic && row.topicId === newest);
      return new Map(rows.map(({ partition, position }) => [partition, position]));
    },
    async recordAwaitedTopics(names) {
      for (const name of names) kafka.awaitedTopics.add(name);
    },
    async addPartitions(cluster, partitions) {
      for (const { topic, topicId, partition, position } of partitions) {
        const isKnown = kafka.partitions.some(
          (row) => row.cluster === cluster && row.topicId === topicId && row.partition === partition,
        );
        if (isKnown) continue;
        const place = { id: kafka.partitions.length + 1, cluster, topic, topicId, partition };
        kafka.partitions.push({ ...place, owner: null, epoch: 0, position: BigInt(position), done: [] });
      }
    },
    async readDeletedTenants(tenants) {
      return new Map(
        tenants.flatMap((tenant) => {
          const at = kafka.deletedTenants.get(tenant);
          return at === undefined ? [] : [[tenant, at] as const];
        }),
      );
    },
  };
}

type Leases = Pick<KafkaStore, 'renewLease' | 'releasePartitions' | 'removeConsumer'>;

function createLeases(store: MemoryStore): Leases {
  const { kafka } = store;
  const release = (rows: readonly PartitionRow[]): void => {
    for (const row of rows) {
      row.owner = null;
      row.epoch += 1;
    }
  };
  return {
    async renewLease({ id, cluster, topicIds, leaseMs }) {
      const now = store.now();
      kafka.consumers.set(id, { cluster, topicIds, renewedAt: now });
      for (const [other, row] of kafka.consumers) {
        // It renewed before the clock stepped back.
        row.renewedAt = Math.min(row.renewedAt, now);
        if (other !== id && row.renewedAt < now - leaseMs) kafka.consumers.delete(other);
      }
      for (const row of kafka.partitions)
        if (row.owner !== null && !kafka.consumers.has(row.owner)) row.owner = null;
      takePartitions(kafka, id);
      return listOwned(kafka, id);
    },
    async releasePartitions(consumerId, ids) {
      release(kafka.partitions.filter((row) => row.owner === consumerId && ids.includes(row.id)));
    },
    async removeConsumer(consumerId) {
      kafka.consumers.delete(consumerId);
      release(kafka.partitions.filter(({ owner }) => owner === consumerId));
    },
  };
}

/** A partition with the processes that read it. Partitions with the same readers are a group, which is divided evenly among them. */
interface Share {
  readonly row: PartitionRow;
  readonly readers: readonly Uuid[];
  /** How many partitions of its group each reader may have. */
  readonly share: number;
  /** Its number among the partitions of its group with the same owner, or without one. */
  readonly number: number;
}

function sharesOf(kafka: KafkaTables): Share[] {
  const readersOf = ({ cluster, topicId }: PartitionRow): Uuid[] =>
    [...kafka.consumers]
      .filter(([, reader]) => reader.cluster === cluster && reader.topicIds.includes(topicId))
      .map(([id]) => id)
      .sort();
  const read = kafka.partitions.map((row) => ({ row, readers: readersOf(row) }));
  const groups = Map.groupBy(read, ({ readers }) => readers.join());
  const numbers = new Map<string, number>();
  return read.map(({ row, readers }) => {
    const group = readers.join();
    const share = Math.ceil(groups.get(group)!.length / Math.max(1, readers.length));
    const owned = `${group} ${row.owner}`;
    const number = (numbers.get(owned) ?? 0) + 1;
    numbers.set(owned, number);
    return { row, readers, share, number };
  });
}

function takePartitions(kafka: KafkaTables, consumerId: Uuid): void {
  const shares = sharesOf(kafka);
  const ownedBy = new Map<string, number>();
  for (const { row, readers } of shares)
    if (row.owner === consumerId) ownedBy.set(readers.join(), (ownedBy.get(readers.join()) ?? 0) + 1);
  for (const { row, readers, share, number } of shares) {
    if (row.owner !== null) continue;
    const mayTake =
      readers.length === 0
        ? countWaiting(kafka, row.id) > 0
        : readers.includes(consumerId) && number <= share - (ownedBy.get(readers.join()) ?? 0);
    if (!mayTake) continue;
    row.owner = consumerId;
    row.epoch += 1;
  }
}

function listOwned(kafka: KafkaTables, consumerId: Uuid): OwnedPartition[] {
  const owned = sharesOf(kafka).filter(({ row }) => row.owner === consumerId);
  return owned.map(({ row, readers, share, number }) => {
    const { id, topic, topicId, partition, epoch, position, done } = row;
    const waiting = countWaiting(kafka, id);
    const isRead = readers.includes(consumerId) && number <= share;
    const role = isRead ? 'read' : readers.length === 0 && waiting > 0 ? 'drain' : 'release';
    const place = { id, topic, topicId, partition, role } as const;
    return {
      ...place,
      epoch: String(epoch),
      position: String(position),
      done: done.map(String),
      waiting: Math.min(waiting, MAX_COUNTED_WAITING),
    };
  });
}

const isWaiting = ({ state }: ParkedRow): boolean => state === 'waiting';
const countWaiting = (kafka: KafkaTables, partitionId: number): number =>
  [...kafka.parked.values()].filter((row) => row.partitionId === partitionId && isWaiting(row)).length;

type Parking = Pick<
  KafkaStore,
  | 'advance'
  | 'readWaiting'
  | 'setWaitingTenants'
  | 'rejectWaiting'
  | 'deleteWaiting'
  | 'countWaiting'
  | 'countRejected'
>;

function createParking(kafka: KafkaTables): Parking {
  const rowsOf = (partitionId: number): ParkedRow[] =>
    [...kafka.parked.values()].filter((row) => row.partitionId === partitionId);
  const changeWaiting = (seq: string, change: Partial<ParkedRow>): void => {
    const row = kafka.parked.get(seq);
    if (row !== undefined && isWaiting(row)) kafka.parked.set(seq, { ...row, ...change });
  };
  return {
    async advance({ id, epoch, position, parked }) {
      const row = kafka.findOwned(id, epoch);
      if (row === undefined) return false;
      for (const record of parked) kafka.park(id, record);
      kafka.setPosition(row, BigInt(position));
      return true;
    },
    async readWaiting(partitionId, { max, exceptTenants }) {
      return rowsOf(partitionId)
        .filter((row) => isWaiting(row) && (row.tenant === null || !exceptTenants.includes(row.tenant)))
        .slice(0, max);
    },
    async setWaitingTenants(rows) {
      for (const { seq, tenant } of rows) changeWaiting(seq, { tenant });
    },
    async rejectWaiting(rows) {
      for (const { seq, reason } of rows) changeWaiting(seq, { state: 'rejected', reason });
    },
    async deleteWaiting(seqs) {
      for (const seq of seqs) {
        const row = kafka.parked.get(seq);
        if (row !== undefined && isWaiting(row)) kafka.parked.delete(seq);
      }
    },
    async countWaiting(partitionId) {
      const waiting = Map.groupBy(rowsOf(partitionId).filter(isWaiting), ({ tenant }) => tenant);
      return new Map([...waiting].map(([tenant, rows]) => [tenant, rows.length]));
    },
    async countRejected(partitionId, max) {
      return Math.min(max, rowsOf(partitionId).filter(({ state }) => state === 'rejected').length);
    },
  };
}
