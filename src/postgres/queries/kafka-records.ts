/** Parked Kafka records: rejected ones, and those that wait for the limit of their tenant. */
import type { Advance, StoredParkedRecord } from '../../ports/kafka-store.ts';
import type { Pool } from '../database.ts';

// The same lock and epoch as in the accept statement. A record that is parked twice is stored once,
// and so is one that a producer wrote twice to the accept topic.
const ADVANCE = {
  name: 'kafka_advance',
  text: `
    with owned as materialized (
      select p.id from posthorn.kafka_partitions p where p.id = $1 and p.epoch = $2::bigint for update
    ),
    parked as (
      insert into posthorn.kafka_records
             (id, partition_id, record_offset, state, tenant, key, value, headers, recorded_at, reason)
      select r.id, o.id, r.record_offset, r.state, r.tenant, r.key, r.value, r.headers::json, to_timestamp(r.recorded_at), r.reason
        from owned o, unnest($5::uuid[], $6::bigint[], $7::text[], $8::text[], $9::bytea[], $10::bytea[], $11::text[],
                             $12::float8[], $13::text[])
                      with ordinality as r(id, record_offset, state, tenant, key, value, headers, recorded_at, reason, n)
       order by r.n
          on conflict do nothing
    ),
    moved as (
      update posthorn.kafka_partitions p
         set position = $3::bigint, done = array(select d from unnest(p.done) as d where d >= $3::bigint),
             lost_records = lost_records + $4::bigint
        from owned o where p.id = o.id
    )
    select exists (select from owned) as is_owned`,
};

/** Returns false if another process owns the partition. */
export async function advancePartition(pool: Pool, advance: Advance): Promise<boolean> {
  const { parked } = advance;
  const { rows } = await pool.query<{ is_owned: boolean }>({
    ...ADVANCE,
    values: [
      advance.id,
      advance.epoch,
      advance.position,
      advance.lost ?? '0',
      parked.map(({ id }) => id),
      parked.map(({ offset }) => offset),
      parked.map(({ state }) => state),
      parked.map(({ tenant }) => tenant),
      parked.map(({ key }) => key),
      parked.map(({ value }) => value),
      parked.map(({ headers }) => toJson(headers)),
      parked.map(({ recordedAt }) => recordedAt / 1000),
      parked.map(({ reason }) => reason),
    ],
  });
  return rows[0]!.is_owned;
}

const toJson = (headers: StoredParkedRecord['headers']): string =>
  JSON.stringify(headers.map(([name, value]) => [toBase64(Buffer.from(name)), toBase64(value)]));

const toBase64 = (bytes: Buffer | null): string | null => bytes?.toString('base64') ?? null;

const fromBase64 = (text: string | null): Buffer | null =>
  text === null ? null : Buffer.from(text, 'base64');

/** Reads headers as the table has them. */
export const parseParkedHeaders = (
  stored: readonly [string, string | null][],
): StoredParkedRecord['headers'] =>
  stored.map(([name, value]) => [fromBase64(name)!.toString(), fromBase64(value)] as const);

type Row = Omit<StoredParkedRecord, 'headers'> & { readonly headers: [string, string | null][] };

const READ_WAITING = {
  name: 'kafka_read_waiting',
  text: `
    select seq::text, id, record_offset::text as offset, state, tenant, key, value, headers,
           extract(epoch from recorded_at)::float8 * 1000 as "recordedAt", reason
      from posthorn.kafka_records
     where partition_id = $1 and state = 'waiting' and (tenant is null or tenant <> all ($3::text[]))
     order by seq limit $2`,
};

export async function readWaitingRecords(
  pool: Pool,
  partitionId: number,
  options: { readonly max: number; readonly exceptTenants: readonly string[] },
): Promise<StoredParkedRecord[]> {
  const { rows } = await pool.query<Row>({
    ...READ_WAITING,
    values: [partitionId, options.max, options.exceptTenants],
  });
  return rows.map((row) => ({ ...row, headers: parseParkedHeaders(row.headers) }));
}

export async function setWaitingTenants(
  pool: Pool,
  rows: readonly { readonly seq: string; readonly tenant: string }[],
): Promise<void> {
  await pool.query(
    `update posthorn.kafka_records r set tenant = held.tenant
       from unnest($1::bigint[], $2::text[]) as held(seq, tenant) where r.seq = held.seq and r.state = 'waiting'`,
    [rows.map(({ seq }) => seq), rows.map(({ tenant }) => tenant)],
  );
}

export async function rejectWaitingRecords(
  pool: Pool,
  rows: readonly { readonly seq: string; readonly reason: string }[],
): Promise<void> {
  await pool.query(
    `update posthorn.kafka_records r set state = 'rejected', reason = refused.reason
       from unnest($1::bigint[], $2::text[]) as refused(seq, reason) where r.seq = refused.seq and r.state = 'waiting'`,
    [rows.map(({ seq }) => seq), rows.map(({ reason }) => reason)],
  );
}

export async function deleteWaitingRecords(pool: Pool, seqs: readonly string[]): Promise<void> {
  await pool.query(
    "delete from posthorn.kafka_records where seq = any ($1::bigint[]) and state = 'waiting'",
    [seqs],
  );
}

export async function countWaitingRecords(
  pool: Pool,
  partitionId: number,
): Promise<ReadonlyMap<string | null, number>> {
  const { rows } = await pool.query<{ tenant: string | null; count: number }>(
    `select tenant, count(*)::int as count from posthorn.kafka_records
      where partition_id = $1 and state = 'waiting' group by tenant`,
    [partitionId],
  );
  return new Map(rows.map(({ tenant, count }) => [tenant, count]));
}

export async function countRejectedRecords(pool: Pool, partitionId: number, max: number): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from (select from posthorn.kafka_records
                                          where partition_id = $1 and state = 'rejected' limit $2) as counted`,
    [partitionId, max],
  );
  return rows[0]!.count;
}

/**
 * When the deletion of all data of these tenants ended, in milliseconds since the epoch. Others are missing. `at` only stands
 * in while the deletion runs: it is later than every id of the tenant, and a wrong clock may have put an id into the future.
 */
export async function readDeletedTenants(
  pool: Pool,
  tenants: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ id: string; at_ms: number }>({
    name: 'kafka_deleted_tenants',
    text: `select id, extract(epoch from coalesce(applied_at, at))::float8 * 1000 as at_ms from posthorn.expunged
            where kind = 'tenant' and id = any ($1::text[])`,
    values: [tenants],
  });
  return new Map(rows.map(({ id, at_ms }) => [id, at_ms]));
}
