/** Deliveries that were skipped because their endpoint is disabled: counts, and the limits of what is kept. */
import { firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { SkippedCount } from '../../ports/statistics-store.ts';
import type { Client, Pool } from '../database.ts';

/** The condition of the index `deliveries_skipped`. */
const SKIPPED = `d.status = 'skipped' and d.reason = 'endpoint_disabled'`;

/** Starts a new count, within the transaction that disables the endpoint. */
export async function restartSkippedCount(client: Client, endpointId: Uuid): Promise<void> {
  await client.query(
    `insert into posthorn.endpoint_skips as s (endpoint_id, counted_from) values ($1, now())
         on conflict (endpoint_id) do update set counted_from = excluded.counted_from, total_before = s.total`,
    [endpointId],
  );
}

// What was skipped before the endpoint was last disabled belongs to the previous count.
const ADD = {
  name: 'add_skipped',
  text: `
    insert into posthorn.endpoint_skips as s (endpoint_id, total, total_before)
    select t.endpoint_id, sum(t.count), coalesce(sum(t.count) filter (where to_timestamp(t.at / 1000) < known.counted_from), 0)
      from json_to_recordset($1::json) as t(endpoint_id uuid, at float8, count int)
      left join posthorn.endpoint_skips known on known.endpoint_id = t.endpoint_id
     group by t.endpoint_id order by t.endpoint_id
        on conflict (endpoint_id) do update
       set total = s.total + excluded.total, total_before = s.total_before + excluded.total_before`,
};

export async function addSkipped(client: Client, counts: readonly SkippedCount[]): Promise<void> {
  if (counts.length === 0) return;
  const rows = counts.map(({ endpointId, at, count }) => ({ endpoint_id: endpointId, at, count }));
  await client.query({ ...ADD, values: [JSON.stringify(rows)] });
}

const drop = (excess: string): string => `
  with excess as materialized (${excess}),
  deleted as (
    delete from posthorn.deliveries d where d.id = any (array(select id from excess)) and ${SKIPPED}
    returning d.endpoint_id
  ),
  counted as (
    update posthorn.endpoint_skips s set dropped = s.dropped + g.n
      from (select endpoint_id, count(*) as n from deleted group by endpoint_id) g where s.endpoint_id = g.endpoint_id
  )
  select count(*)::int as dropped from deleted`;

// The bound on the id lets the statement use the index. A delivery may have waited for long before it was skipped: its
// retention begins when it is skipped.
const DROP_OLD = {
  name: 'drop_old_skipped',
  text: drop(`
    select d.id from posthorn.endpoint_skips s
     cross join lateral (select d.id from posthorn.deliveries d
                          where d.endpoint_id = s.endpoint_id and ${SKIPPED} and d.id < $1
                            and d.finished_at < to_timestamp($3::float8 / 1000) order by d.id limit $2) d
     limit $2`),
};

// The number of skipped deliveries that were not dropped is a bound for those in history: some may have been replayed.
const DROP_SURPLUS = {
  name: 'drop_surplus_skipped',
  text: drop(`
    select d.id from posthorn.endpoint_skips s
     cross join lateral (select d.id from posthorn.deliveries d
                          where d.endpoint_id = s.endpoint_id and ${SKIPPED} order by d.id desc offset $1 limit $2) d
     where s.total - s.dropped > $1
     limit $2`),
};

async function run(
  pool: Pool,
  statement: { name: string; text: string },
  values: unknown[],
): Promise<number> {
  const { rows } = await pool.query<{ dropped: number }>({ ...statement, values });
  return rows[0]!.dropped;
}

/** Deletes a chunk of deliveries that were skipped before `cutoffMs`. Returns how many. */
export const deleteOldSkipped = (pool: Pool, cutoffMs: number, chunk: number): Promise<number> =>
  run(pool, DROP_OLD, [firstIdAt(cutoffMs), chunk, cutoffMs]);

/** Deletes a chunk of skipped deliveries of endpoints that have more than `keep`, the newest of which stay. */
export const deleteSurplusSkipped = (pool: Pool, keep: number, chunk: number): Promise<number> =>
  run(pool, DROP_SURPLUS, [keep, chunk]);
