/** Which process reads which Kafka partition. All changes are made under one lock, in the transaction of a renewal. */
import type {
  KafkaConsumerLease,
  NewKafkaPartition,
  OwnedPartition,
  PartitionReport,
} from '../../ports/kafka-store.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Client, Pool } from '../database.ts';
import { inTransaction } from '../database.ts';

export async function listKnownTopics(pool: Pool, cluster: string): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ topic: string }>(
    `select topic from posthorn.kafka_partitions where cluster = $1
      union select topic from posthorn.kafka_awaited_topics`,
    [cluster],
  );
  return new Set(rows.map(({ topic }) => topic));
}

/** Returns how far each partition of a topic is stored. Of a topic that was created again, the newest counts. */
export async function readPositions(pool: Pool, topic: string): Promise<ReadonlyMap<number, bigint>> {
  const { rows } = await pool.query<{ partition: number; position: string }>({
    name: 'kafka_positions',
    text: `select partition, position::text from posthorn.kafka_partitions p
            where topic = $1 and topic_id = (select l.topic_id from posthorn.kafka_partitions l where l.topic = $1
                                              order by l.id desc limit 1)`,
    values: [topic],
  });
  return new Map(rows.map(({ partition, position }) => [partition, BigInt(position)]));
}

export async function recordAwaitedTopics(pool: Pool, names: readonly string[]): Promise<void> {
  await pool.query(
    'insert into posthorn.kafka_awaited_topics (topic) select unnest($1::text[]) on conflict do nothing',
    [names],
  );
}

export async function addPartitions(
  pool: Pool,
  cluster: string,
  partitions: readonly NewKafkaPartition[],
): Promise<void> {
  await pool.query(
    `insert into posthorn.kafka_partitions (cluster, topic, topic_id, partition, position)
     select $1, p.topic, p.topic_id, p.partition, p.position
       from unnest($2::text[], $3::text[], $4::int[], $5::bigint[]) as p(topic, topic_id, partition, position)
         on conflict do nothing`,
    [
      cluster,
      partitions.map(({ topic }) => topic),
      partitions.map(({ topicId }) => topicId),
      partitions.map(({ partition }) => partition),
      partitions.map(({ position }) => position),
    ],
  );
}

export async function renewKafkaLease(
  pool: Pool,
  lease: KafkaConsumerLease,
  reports: readonly PartitionReport[],
): Promise<OwnedPartition[]> {
  return inTransaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.kafkaLeases]);
    await client.query(
      `insert into posthorn.kafka_consumers (id, name, cluster, topic_ids, renewed_at)
       values ($1, $2, $3, $4, clock_timestamp())
           on conflict (id) do update set cluster = excluded.cluster, topic_ids = excluded.topic_ids, renewed_at = excluded.renewed_at`,
      [lease.id, lease.name, lease.cluster, lease.topicIds],
    );
    // A renewal in the future was made before the clock stepped back: it counts as one of now. Otherwise a dead process would
    // keep its partitions until then.
    await client.query(
      'update posthorn.kafka_consumers set renewed_at = clock_timestamp() where renewed_at > clock_timestamp()',
    );
    // Not the process that renews: a slow statement above could make its own renewal look too old.
    await client.query(
      `delete from posthorn.kafka_consumers
        where id <> $1 and renewed_at < clock_timestamp() - make_interval(secs => $2)`,
      [lease.id, lease.leaseMs / 1000],
    );
    await client.query(
      `update posthorn.kafka_partitions set owner = null
        where owner is not null and owner not in (select id from posthorn.kafka_consumers)`,
    );
    if (reports.length > 0) await report(client, reports);
    await takePartitions(client, lease.id);
    return listOwned(client, lease.id);
  });
}

async function report(client: Client, reports: readonly PartitionReport[]): Promise<void> {
  await client.query(
    `update posthorn.kafka_partitions p
        set log_end = coalesce(r.log_end, p.log_end), paused_reason = r.paused_reason,
            seen_at = case when r.has_answered then now() else p.seen_at end
       from unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[], $5::boolean[])
            as r(id, epoch, log_end, paused_reason, has_answered)
      where p.id = r.id and p.epoch = r.epoch`,
    [
      reports.map(({ id }) => id),
      reports.map(({ epoch }) => epoch),
      reports.map(({ logEnd }) => logEnd),
      reports.map(({ pausedReason }) => pausedReason),
      reports.map(({ hasAnswered }) => hasAnswered),
    ],
  );
}

/**
 * Processes may read different topics, for example while the settings change. The partitions that the same processes read form a
 * group, which these processes divide evenly. Within a group, `n` numbers the partitions of each owner, and those without one.
 */
const SHARES = `
  readers as (
    select p.id, p.owner,
           array(select c.id from posthorn.kafka_consumers c
                  where c.cluster = p.cluster and p.topic_id = any (c.topic_ids) order by c.id) as readers
      from posthorn.kafka_partitions p
  ),
  shares as (
    select id, owner, readers,
           ceil(count(*) over (partition by readers)::numeric / nullif(cardinality(readers), 0)) as share,
           count(*) filter (where owner = $1) over (partition by readers) as owned,
           row_number() over (partition by readers, owner order by id) as n
      from readers
  )`;

const HAS_WAITING =
  "exists (select from posthorn.kafka_records r where r.partition_id = s.id and r.state = 'waiting')";

/** Takes free partitions up to the fair share. Also takes free partitions that no process reads any more, if they have waiting records. */
async function takePartitions(client: Client, consumerId: string): Promise<void> {
  await client.query(
    `with ${SHARES}
     update posthorn.kafka_partitions set owner = $1, epoch = epoch + 1, paused_reason = null
      where id = any (array(select s.id from shares s
                             where s.owner is null
                               and case when s.readers = '{}' then ${HAS_WAITING}
                                        else $1 = any (s.readers) and s.n <= s.share - s.owned end))`,
    [consumerId],
  );
}

/** Counting stops here, because all processes renew under one lock. The owner counts the rest before it reads further. */
const MAX_COUNTED_WAITING = 100;

async function listOwned(client: Client, consumerId: string): Promise<OwnedPartition[]> {
  const { rows } = await client.query<OwnedPartition>(
    `with ${SHARES}
     select p.id, p.topic, p.topic_id as "topicId", p.partition, p.epoch::text, p.position::text, p.done::text[],
            case when $1 = any (s.readers) and s.n <= s.share then 'read'
                 when s.readers = '{}' and ${HAS_WAITING} then 'drain'
                 else 'release' end as role,
            (select count(*)::int from (select from posthorn.kafka_records r
                                         where r.partition_id = p.id and r.state = 'waiting' limit $2) as counted) as waiting
       from shares s join posthorn.kafka_partitions p using (id) where s.owner = $1 order by p.id`,
    [consumerId, MAX_COUNTED_WAITING],
  );
  return rows;
}

export async function releasePartitions(
  pool: Pool,
  consumerId: string,
  ids: readonly number[],
): Promise<void> {
  await pool.query(
    'update posthorn.kafka_partitions set owner = null, epoch = epoch + 1 where owner = $1 and id = any ($2::int[])',
    [consumerId, ids],
  );
}

export async function removeKafkaConsumer(pool: Pool, consumerId: string): Promise<void> {
  await pool.query(
    `with removed as (delete from posthorn.kafka_consumers where id = $1)
     update posthorn.kafka_partitions set owner = null, epoch = epoch + 1 where owner = $1`,
    [consumerId],
  );
}
