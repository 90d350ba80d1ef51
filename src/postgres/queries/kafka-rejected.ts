/** Kafka records that cannot become events: list, retry, discard. */
import type { Uuid } from '../../domain/ids.ts';
import type { Queryable } from '../database.ts';
import { parseParkedHeaders } from './kafka-records.ts';
import { LAST_ID } from './list-query.ts';

export interface RejectedRecord {
  /** Of the event that it becomes when it is retried. */
  readonly id: Uuid;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  readonly tenant: string | null;
  readonly reason: string;
  readonly recordedAt: Date;
  readonly rejectedAt: Date;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[];
}

type Row = Omit<RejectedRecord, 'headers'> & { readonly headers: [string, string | null][] };

const COLUMNS = `r.id, p.topic, p.partition, r.record_offset::text as offset, r.tenant, coalesce(r.reason, '') as reason,
       r.recorded_at as "recordedAt", r.parked_at as "rejectedAt", r.key, r.value, r.headers`;
const FROM = 'posthorn.kafka_records r join posthorn.kafka_partitions p on p.id = r.partition_id';

const toRecord = (row: Row): RejectedRecord => ({ ...row, headers: parseParkedHeaders(row.headers) });

/** Newest first. */
export async function listRejectedRecords(
  client: Queryable,
  { topic, before, limit }: { topic: string | null; before: Uuid | null; limit: number },
): Promise<RejectedRecord[]> {
  const { rows } = await client.query<Row>(
    `select ${COLUMNS} from ${FROM}
      where r.state = 'rejected' and r.id < $1 and ($2::text is null or p.topic = $2) order by r.id desc limit $3`,
    [before ?? LAST_ID, topic, limit],
  );
  return rows.map(toRecord);
}

/** True if the record of this event in the topic is rejected, or waits to be stored. */
export async function isSetAside(client: Queryable, topic: string, id: Uuid): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (select from ${FROM} where r.id = $1 and p.topic = $2) as found`,
    [id, topic],
  );
  return rows[0]!.found;
}

export async function findRejectedRecord(client: Queryable, id: Uuid): Promise<RejectedRecord | null> {
  const { rows } = await client.query<Row>(
    `select ${COLUMNS} from ${FROM} where r.id = $1 and r.state = 'rejected'`,
    [id],
  );
  return rows[0] === undefined ? null : toRecord(rows[0]);
}

/** Makes rejected records wait for the owner of their partition, which maps them again. Returns how many. */
export async function retryRejectedRecords(
  client: Queryable,
  { ids, topic, max }: { ids: readonly Uuid[] | null; topic: string | null; max: number },
): Promise<number> {
  const { rowCount } = await client.query(
    `update posthorn.kafka_records set state = 'waiting'
      where seq = any (array(select r.seq from ${FROM}
                              where r.state = 'rejected' and ($1::uuid[] is null or r.id = any ($1))
                                and ($2::text is null or p.topic = $2)
                              order by r.seq limit $3))`,
    [ids, topic, max],
  );
  return rowCount ?? 0;
}

/** Returns false if there is no such record. */
export async function discardRejectedRecord(client: Queryable, id: Uuid): Promise<boolean> {
  const { rowCount } = await client.query(
    "delete from posthorn.kafka_records where id = $1 and state = 'rejected'",
    [id],
  );
  return rowCount === 1;
}
