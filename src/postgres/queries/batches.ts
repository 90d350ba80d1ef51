import type { Uuid } from '../../domain/ids.ts';
import type { BatchStart, OpenBatch, StoredBatch } from '../../ports/batch-log.ts';
import type { Pool, Queryable } from '../database.ts';
import { uuidArray } from '../uuid-array.ts';
import { QUEUE_COLUMNS, type QueueRow, toLoaded } from './load-lanes.ts';
import { ownerOfLane, shardOfLane } from './ownership.ts';

// The shards are locked: the next owner reads the open batches once, so no batch may be recorded after another worker has
// taken the shard or the lane has moved to another one. Each delivery is looked up by its key: "offset 0" keeps the planner
// from a join, which would compare every delivery with every row.
const RECORD = {
  name: 'record_batches',
  text: `
    with incoming as materialized (
      select *, ($4::uuid[])[first:last] as delivery_ids, ($5::int[])[first:last] as attempts
        from json_to_recordset($1::json) as t(id uuid, endpoint_id uuid, shard smallint, first int, last int, at float8)
    ),
    owned as materialized (
      select s.shard from posthorn.shards s
       where s.shard = any (array(select shard from incoming)) and s.owner = $3 order by s.shard for share of s
    ),
    allowed as materialized (
      select i.* from incoming i join owned using (shard)
       where ${shardOfLane('i.endpoint_id')} = i.shard
         and cardinality(i.delivery_ids) = (
               select count(*) from unnest(i.delivery_ids, i.attempts) as m(id, attempts)
                cross join lateral (
                      select from posthorn.queue q where q.id = m.id and q.attempts = m.attempts offset 0) as waiting)
         and not exists (select from posthorn.batches b where b.id = i.id and b.delivery_ids <> i.delivery_ids)
    ),
    stored as (
      insert into posthorn.batches (id, endpoint_id, delivery_ids)
      select id, endpoint_id, delivery_ids from allowed on conflict (id) do nothing
    ),
    opened as (
      insert into posthorn.open_batches (id, endpoint_id, started_at)
      select id, endpoint_id, greatest(clock_timestamp(), to_timestamp(at)) from allowed
          on conflict (id) do update set started_at = excluded.started_at
    ),
    closed as (
      delete from posthorn.open_batches o where o.id = any ($2::uuid[]) and ${ownerOfLane('o.endpoint_id')} = $3
    )
    select id from allowed`,
};

/** Records starts and closes the batches in `ended`. Returns the batches that may be sent. */
export async function recordBatches(
  pool: Pool,
  starts: readonly BatchStart[],
  ended: readonly Uuid[],
  workerId: Uuid,
): Promise<Set<Uuid>> {
  const members = starts.flatMap((start) => start.members);
  let last = 0;
  const rows = starts.map(({ id, endpointId, shard, members: { length }, at }) => {
    const first = last + 1;
    last += length;
    return { id, endpoint_id: endpointId, shard, first, last, at: at === undefined ? null : at / 1000 };
  });
  const { rows: allowed } = await pool.query<{ id: Uuid }>({
    ...RECORD,
    values: [
      JSON.stringify(rows),
      `{${ended.join(',')}}`,
      workerId,
      uuidArray(members.map(({ deliveryId }) => deliveryId)),
      `{${members.map(({ attempts }) => attempts).join(',')}}`,
    ],
  });
  return new Set(allowed.map(({ id }) => id));
}

export async function loadOpenBatches(pool: Pool, endpointIds: readonly Uuid[]): Promise<OpenBatch[]> {
  const { rows } = await pool.query<{
    id: Uuid;
    endpoint_id: Uuid;
    delivery_ids: Uuid[];
    started_at: number;
  }>({
    name: 'load_open_batches',
    text: `select o.id, o.endpoint_id, b.delivery_ids::text[] as delivery_ids,
                  extract(epoch from o.started_at)::float8 * 1000 as started_at
             from posthorn.open_batches o join posthorn.batches b on b.id = o.id
            where o.endpoint_id = any ($1::uuid[])`,
    values: [`{${endpointIds.join(',')}}`],
  });
  return rows.map((row) => ({
    id: row.id,
    endpointId: row.endpoint_id,
    deliveryIds: row.delivery_ids,
    startedAt: row.started_at,
  }));
}

const LOAD = {
  name: 'load_batch',
  text: `
    select ${QUEUE_COLUMNS} from posthorn.queue
     where id = any (coalesce($2::uuid[], array(select id from posthorn.queue where batch_id = $1))) order by seq`,
};

export async function loadBatch(pool: Pool, id: Uuid): Promise<StoredBatch> {
  const composition = await findBatchMembers(pool, id);
  const members = composition === null ? null : `{${composition.deliveryIds.join(',')}}`;
  const { rows } = await pool.query<QueueRow>({ ...LOAD, values: [id, members] });
  return { composition: composition?.deliveryIds ?? null, waiting: rows.map(toLoaded) };
}

/** The recorded composition of a batch. Null: it was never sent, or its retention has ended. */
export async function findBatchMembers(
  client: Queryable,
  id: Uuid,
): Promise<{ readonly endpointId: Uuid; readonly deliveryIds: readonly Uuid[] } | null> {
  const { rows } = await client.query<{ endpoint_id: Uuid; delivery_ids: Uuid[] }>({
    name: 'find_batch',
    text: 'select endpoint_id, delivery_ids::text[] as delivery_ids from posthorn.batches where id = $1',
    values: [id],
  });
  const batch = rows[0];
  return batch === undefined ? null : { endpointId: batch.endpoint_id, deliveryIds: batch.delivery_ids };
}

/**
 * Deletes up to `max` batches with an id below `firstKept`, but none whose attempts may still be stored: an expunge needs to know
 * which attempts belong together. A waiting delivery of a deleted batch gets into a new one.
 */
export async function deleteBatches(pool: Pool, firstKept: Uuid, max: number): Promise<number> {
  const { rows } = await pool.query<{ deleted: number }>(
    `with expired as materialized (
            select id from posthorn.batches
             where id < $1
               and id < coalesce((select posthorn.first_id_at(min(p.from_at)) from posthorn.partitions p
                                   where p.parent = 'attempts' and p.state = 'attached' and not p.kept), $1)
             order by id limit $2),
          closed as (delete from posthorn.open_batches o using expired e where o.id = e.id),
          deleted as (delete from posthorn.batches b using expired e where b.id = e.id returning b.id)
     select count(*)::int as deleted from deleted`,
    [firstKept, max],
  );
  return rows[0]!.deleted;
}

/**
 * Closes batches that stayed open because their worker died: those that started over a day ago and of which no delivery waits. A
 * start in the future was recorded while the clock was ahead. Every next owner of a FIFO endpoint would wait because of it, so it
 * becomes the present time.
 */
export async function closeLeftBatches(pool: Pool): Promise<void> {
  await pool.query(
    "update posthorn.open_batches set started_at = now() where started_at > now() + interval '1 minute'",
  );
  await pool.query(
    `delete from posthorn.open_batches o
      where o.started_at < now() - interval '1 day'
        and not exists (select from posthorn.batches b join posthorn.queue q on q.id = any (b.delivery_ids) where b.id = o.id)`,
  );
}
