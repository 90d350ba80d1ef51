/** The steps that replace an expired partition. The functions of migration 0030 do the work as the owner of the tables. */
import type { Uuid } from '../../domain/ids.ts';
import { firstIdAt } from '../../domain/ids.ts';
import type { PartitionedTable } from '../../domain/retention.ts';
import type { Partition, PartitionReplacement } from '../../ports/retention-store.ts';
import { inTransaction, type Pool } from '../database.ts';
import { failureOf } from '../failures.ts';
import { hasHistory, isEventNeeded, isRestored } from './needed-events.ts';

/** How long a step waits for a lock. Meanwhile every other statement on the table waits behind it. */
const LOCK_TIMEOUT = "set local lock_timeout = '50ms'";

/** Returns null if another transaction holds a lock that the step needs. */
async function nullIfLocked<T>(step: Promise<T>): Promise<T | null> {
  try {
    return await step;
  } catch (error) {
    if (failureOf(error) === 'conflict') return null;
    throw error;
  }
}

/**
 * Returns the oldest expired partition. Null: there is none, or it must stay for now. It stays while a task may replay
 * deliveries out of it. A partition of events also stays until its deliveries have expired, and with an archive its
 * attempts, because they are archived with the tenant of their event.
 */
export async function findExpiredPartition(
  pool: Pool,
  table: PartitionedTable,
  cutoffMs: number,
): Promise<Partition | null> {
  const { rows } = await pool.query<{ name: string; from_ms: number; to_ms: number; is_needed: boolean }>(
    `select p.name, extract(epoch from p.from_at)::float8 * 1000 as from_ms, extract(epoch from p.to_at)::float8 * 1000 as to_ms,
            (p.parent = 'deliveries' and exists (
               select from posthorn.tasks t
                where t.state in ('queued', 'running') and t.selection -> 'statuses' ?| array['delivered', 'discarded', 'skipped']
                  and coalesce((t.selection ->> 'since')::float8, 0) < extract(epoch from p.to_at) * 1000
                  and (t.selection ->> 'until' is null
                       or (t.selection ->> 'until')::float8 > extract(epoch from p.from_at) * 1000)
                  and (t.cursor is null or t.cursor < posthorn.first_id_at(p.to_at))))
            or (p.parent = 'events' and exists (
               select from posthorn.partitions d
                where (d.parent = 'deliveries'
                       or (d.parent = 'attempts' and exists (select from posthorn.archive_state s where s.is_required)))
                  and d.state = 'attached' and not d.kept and d.from_at < p.to_at and d.to_at > p.from_at))
              or exists (select from posthorn.restored_ranges g
                          where g.until > now() and g.first_id < posthorn.first_id_at(p.to_at) and g.last_id >= posthorn.first_id_at(p.from_at))
              as is_needed
       from posthorn.partitions p
      where p.parent = $1 and p.state = 'attached' and not p.kept and p.to_at <= to_timestamp($2::float8 / 1000)
        and p.to_at < now() - interval '1 day'
      order by p.from_at limit 1`,
    [table, cutoffMs],
  );
  const row = rows[0];
  if (row === undefined || row.is_needed) return null;
  return { name: row.name, table, fromMs: row.from_ms, toMs: row.to_ms };
}

export async function findReplacement(
  pool: Pool,
  table: PartitionedTable,
): Promise<PartitionReplacement | null> {
  const { rows } = await pool.query<{ name: string; is_copied: boolean }>(
    `select name, copied_at is not null as is_copied from posthorn.partitions
      where parent = $1 and state = 'preparing' order by from_at limit 1`,
    [table],
  );
  const row = rows[0];
  return row === undefined ? null : { name: row.name, table, isCopied: row.is_copied };
}

/** Returns null if the partition is locked. */
export async function preparePartitionSwap(
  pool: Pool,
  { name, table }: Partition,
  finishedSinceMs: number,
): Promise<PartitionReplacement | null> {
  const prepared = inTransaction(pool, async (client) => {
    await client.query(LOCK_TIMEOUT);
    const { rows } = await client.query<{ name: string }>(
      'select posthorn.prepare_partition_swap($1, to_timestamp($2::float8 / 1000)) as name',
      [name, finishedSinceMs],
    );
    return { name: rows[0]!.name, table, isCopied: false };
  });
  return nullIfLocked(prepared);
}

export async function copyPartitionRows(
  pool: Pool,
  { name }: PartitionReplacement,
  after: Uuid | null,
  maxRows: number,
): Promise<Uuid | null> {
  const { rows } = await pool.query<{ after: Uuid | null }>(
    'select posthorn.copy_partition_rows($1, $2, $3) as after',
    [name, after, maxRows],
  );
  return rows[0]!.after;
}

/** Returns false if the table is locked. */
export async function finishPartitionSwap(pool: Pool, { name }: PartitionReplacement): Promise<boolean> {
  const swap = async (): Promise<true> => {
    await pool.query('select posthorn.refresh_partition_swap($1)', [name]);
    await inTransaction(pool, async (client) => {
      await client.query(LOCK_TIMEOUT);
      await client.query('select posthorn.finish_partition_swap($1)', [name]);
    });
    return true;
  };
  return (await nullIfLocked(swap())) ?? false;
}

/** One transaction for each: a dropped table stays locked until the commit. */
export async function dropDetachedPartitions(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    "select name from posthorn.partitions where state = 'detached' order by from_at",
  );
  for (const { name } of rows) await pool.query('select posthorn.drop_detached_partition($1)', [name]);
  return rows.map(({ name }) => name);
}

const CLEAN_EVERY = "interval '1 hour'";
const ROWS_PER_CLEANING = 5_000;

/** Rows of alias `r` that nothing needs any more. $3: deliveries that ended before this time have expired. */
const UNNEEDED: Readonly<Record<PartitionedTable, string>> = {
  deliveries: 'r.finished_at < to_timestamp($3::float8 / 1000)',
  attempts: `not exists (select from posthorn.queue q where q.id = r.delivery_id)
         and not exists (select from posthorn.dead_letters d where d.id = r.delivery_id)
         and not exists (select from posthorn.deliveries h
                          where h.id = r.delivery_id and h.finished_at >= to_timestamp($3::float8 / 1000))`,
  events: `$3::float8 is not null and not ${isEventNeeded('r')} and not ${hasHistory('r')}`,
};

/**
 * Deletes rows of kept partitions that are no longer needed, a range of keys at a time. Nothing can need such a row again:
 * its delivery is not in the queue, the dead letters or the history any more.
 */
export async function cleanKeptPartitions(
  pool: Pool,
  table: PartitionedTable,
  finishedSinceMs: number,
  isStopped: () => boolean,
): Promise<number> {
  const { rows: due } = await pool.query<{ name: string; from_ms: number; to_ms: number }>(
    `select p.name, extract(epoch from p.from_at)::float8 * 1000 as from_ms, extract(epoch from p.to_at)::float8 * 1000 as to_ms
       from posthorn.partitions p
      where p.parent = $1 and p.kept and p.state = 'attached'
        and (p.cleaned_at is null or p.cleaned_at < now() - ${CLEAN_EVERY}) order by p.from_at`,
    [table],
  );
  let deleted = 0;
  for (const { name, from_ms, to_ms } of due) {
    for (let after: Uuid | null = firstIdAt(from_ms); after !== null && !isStopped(); ) {
      const chunk: CleanedChunk = await cleanChunk(pool, table, { after, toMs: to_ms, finishedSinceMs });
      deleted += chunk.deleted;
      after = chunk.after;
    }
    if (!isStopped())
      await pool.query('update posthorn.partitions set cleaned_at = now() where name = $1', [name]);
  }
  return deleted;
}

interface CleanedChunk {
  readonly deleted: number;
  readonly after: Uuid | null;
}

async function cleanChunk(
  pool: Pool,
  table: PartitionedTable,
  { after, toMs, finishedSinceMs }: { after: Uuid; toMs: number; finishedSinceMs: number },
): Promise<CleanedChunk> {
  const key = table === 'attempts' ? 'delivery_id' : 'id';
  const { rows } = await pool.query<{ deleted: number; scanned: number; last: Uuid | null }>(
    `with scanned as materialized (
       select r.${key} as key from posthorn.${table} r
        where r.${key} > $1 and r.${key} < $2 order by r.${key} limit ${ROWS_PER_CLEANING}
     ),
     deleted as (
       delete from posthorn.${table} r
        where r.${key} > $1 and r.${key} <= (select key from scanned order by key desc limit 1) and ${UNNEEDED[table]}
          and not ${isRestored(`r.${key}`)}
       returning 1
     )
     select (select count(*)::int from deleted) as deleted, (select count(*)::int from scanned) as scanned,
            (select key from scanned order by key desc limit 1) as last`,
    [after, firstIdAt(toMs), finishedSinceMs],
  );
  const { deleted, scanned, last } = rows[0]!;
  return { deleted, after: scanned < ROWS_PER_CLEANING ? null : last };
}
