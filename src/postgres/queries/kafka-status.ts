/** How far the Kafka partitions are read. */
import type { Pool } from '../database.ts';

export interface KafkaPartitionStatus {
  readonly topic: string;
  /** False: its topic was deleted, or is not in the settings. It is listed because it has waiting or rejected records. */
  readonly isCurrent: boolean;
  readonly partition: number;
  /** The next offset to read. */
  readonly position: number;
  /** The end of the partition, as its owner last saw it. Null: nobody has read it yet. */
  readonly logEnd: number | null;
  /** Records that Posthorn has not read yet. Waiting and rejected records do not count. */
  readonly lag: number;
  /** Records that were read and wait to be stored: their tenant is over its limit, or an operator retries them. At most `MAX_COUNTED`. */
  readonly waiting: number;
  /** At most `MAX_COUNTED`. */
  readonly rejected: number;
  /** Records that Kafka deleted before they were read. */
  readonly lost: number;
  /** The process that reads it. Null: none. */
  readonly owner: string | null;
  readonly pausedReason: string | null;
  /** When Kafka last answered for this partition. */
  readonly seenAt: Date | null;
  /** `seenAt`, or since when Posthorn knows the partition. */
  readonly unseenSince: Date;
}

/** Counting stops here, because it takes time for each record and metrics are measured every few seconds. */
export const MAX_COUNTED = 10_000;

const countOf = (state: 'waiting' | 'rejected'): string =>
  `select count(*)::int from (select from posthorn.kafka_records r
                               where r.partition_id = p.id and r.state = '${state}' limit ${MAX_COUNTED}) as counted`;

// If a topic was deleted and created again, only the newest is current. The partitions of others are listed while they have waiting or
// rejected records.
const STATUS = {
  name: 'kafka_status',
  text: `
    with latest as (
      select distinct on (topic) cluster, topic, topic_id from posthorn.kafka_partitions
       where topic = any ($1::text[]) order by topic, id desc
    )
    select p.topic, l.topic is not null as "isCurrent", p.partition, p.position::float8, p.log_end::float8 as "logEnd",
           case when l.topic is null then 0
                else greatest(0, coalesce(p.log_end - p.position - cardinality(p.done), 0)) end::float8 as lag,
           (${countOf('waiting')}) as waiting, (${countOf('rejected')}) as rejected, p.lost_records::float8 as lost,
           k.name as owner, case when l.topic is null then 'topic_removed' else p.paused_reason end as "pausedReason",
           p.seen_at as "seenAt", coalesce(p.seen_at, p.created_at) as "unseenSince"
      from posthorn.kafka_partitions p
      left join latest l on l.cluster = p.cluster and l.topic = p.topic and l.topic_id = p.topic_id
      left join posthorn.kafka_consumers k on k.id = p.owner
     where l.topic is not null or exists (select from posthorn.kafka_records r where r.partition_id = p.id)
     order by p.topic, p.partition, p.id`,
};

/** Returns the partitions of these topics, and other partitions with waiting or rejected records, in order. */
export async function listKafkaPartitions(
  pool: Pool,
  topics: readonly string[],
): Promise<KafkaPartitionStatus[]> {
  const { rows } = await pool.query<KafkaPartitionStatus>({ ...STATUS, values: [topics] });
  return rows;
}
