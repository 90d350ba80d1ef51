/** The outbox table in the producer's own database: how it is created, and how a relay takes rows from it. */
import type { Client, Pool } from '../database.ts';
import { quoteName, quoteText } from '../source-database.ts';

/** Not published and not rejected. The index below has exactly these rows. */
const WAITING = 'published_at is null and problem is null';

export interface OutboxNames {
  readonly table: string;
  readonly publication: string;
  readonly slot: string;
}

/** A list of statements, because a slot cannot be created in a transaction that has written. Each can be run again. */
export function outboxTableSql({ table }: Pick<OutboxNames, 'table'>): string[] {
  const bare = table.split('.').at(-1)!;
  return [
    `create table if not exists ${quoteName(table)} (
  id              uuid primary key default gen_random_uuid(), -- identifies the event, also if the row is read twice
  seq             bigint generated always as identity,        -- the order in which rows are read
  tenant          text,
  type            text not null,
  data            json not null,                              -- json and not jsonb: delivered byte for byte
  idempotency_key text,
  channels        text[],
  endpoint_ids    text[],
  deliver_at      timestamptz,
  headers         json,
  schema_version  text,
  created_at      timestamptz not null default clock_timestamp(),
  published_at    timestamptz,                                -- set by a relay that keeps rows (--keep), with
  event_id        text,                                       --   the event that the row became
  problem         text                                        -- set by the relay: why this row is not an event
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)`,
    `create index if not exists ${quoteName(`${bare}_waiting`)} on ${quoteName(table)} (seq) where ${WAITING}`,
  ];
}

export function replicationSql({ table, publication, slot }: OutboxNames): string[] {
  return [
    `do $$ begin
  if not exists (select from pg_publication where pubname = ${quoteText(publication)}) then
    create publication ${quoteName(publication)} for table ${quoteName(table)} with (publish = 'insert');
  end if;
end $$`,
    `select pg_create_logical_replication_slot(${quoteText(slot)}, 'pgoutput')
 where not exists (select from pg_replication_slots where slot_name = ${quoteText(slot)})`,
  ];
}

/** A row with its columns as text: the form in which both the table and the replication stream give it. */
export interface SourceRow {
  readonly id: string;
  readonly columns: ReadonlyMap<string, string | Buffer | null>;
  /** The size of `data` if it is larger than an event may be; it was not read then. */
  readonly tooLargeBytes: number | null;
}

const TEXT_COLUMNS = [
  'tenant', 'type', 'idempotency_key', 'channels', 'endpoint_ids', 'deliver_at', 'headers', 'schema_version',
  'created_at',
]; // biome-ignore format: two lines read better than nine

/**
 * Locks and returns the next rows in order, and skips rows that another relay has locked. Rows are measured after they
 * are locked: the batch ends at `bytes`, and `data` that is too large for an event is not read.
 */
export async function takeRows(
  client: Client,
  table: string,
  limits: {
    readonly rows: number;
    readonly bytes: number;
    readonly maxEventBytes: number;
    readonly untilSeq: string | null;
  },
): Promise<SourceRow[]> {
  const { rows } = await client.query<Record<string, string | null> & { id: string; bytes: number }>({
    name: 'relay_take',
    text: `
      with locked as materialized (
        select id, seq, octet_length(data::text) as bytes from ${quoteName(table)}
         where ${WAITING} and seq <= coalesce($4::bigint, 9223372036854775807) order by seq limit $1 for update skip locked
      ),
      measured as (select *, sum(bytes) over (order by seq) - bytes as before from locked)
      select m.id::text, m.bytes, case when m.bytes <= $3 then t.data::text end as data,
             ${TEXT_COLUMNS.map((name) => `t.${name}::text`).join(', ')}
        from measured m join ${quoteName(table)} t using (id)
       where m.before < $2 order by m.seq`,
    values: [limits.rows, limits.bytes, limits.maxEventBytes, limits.untilSeq],
  });
  return rows.map(({ id, bytes, ...columns }) => ({
    id,
    columns: new Map(Object.entries(columns)),
    tooLargeBytes: bytes > limits.maxEventBytes ? bytes : null,
  }));
}

/** Tells which transactions a statement that starts now would see, by the lower 32 bits of their id, as in the log. */
export async function readVisibility(pool: Pool): Promise<(xid: number) => boolean> {
  const { rows } = await pool.query<{ snapshot: string }>({
    name: 'relay_snapshot',
    text: 'select pg_current_snapshot()::text as snapshot',
  });
  const [, next, running] = rows[0]!.snapshot.split(':');
  const low = (xid: string): number => Number(BigInt.asUintN(32, BigInt(xid)));
  const nextXid = low(next!);
  const inProgress = new Set((running ?? '').split(',').filter(Boolean).map(low));
  // Transaction ids wrap around: an id is older if it is at most half the range behind.
  return (xid) => ((nextXid - xid) | 0) > 0 && !inProgress.has(xid);
}

export async function findLastWaitingSeq(
  pool: Pool,
  table: string,
  untilSeq: string | null,
): Promise<string | null> {
  const { rows } = await pool.query<{ seq: string }>(
    // `order by seq` would sort by the text in the output and use no index.
    `select t.seq::text as seq from ${quoteName(table)} t
      where ${WAITING} and t.seq <= coalesce($1::bigint, 9223372036854775807) order by t.seq desc limit 1`,
    [untilSeq],
  );
  return rows[0]?.seq ?? null;
}

/** Deletes rows that Posthorn has stored. */
export async function removeRows(
  client: Pool | Client,
  table: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const text = `delete from ${quoteName(table)} where id = any ($1::uuid[])`;
  await client.query({ name: 'relay_remove', text, values: [ids] });
}

/** Marks rows that Posthorn has stored, instead of deleting them (--keep). */
export async function markPublished(
  client: Pool | Client,
  table: string,
  published: readonly { readonly id: string; readonly eventId: string }[],
): Promise<void> {
  if (published.length === 0) return;
  await client.query({
    name: 'relay_mark',
    text: `update ${quoteName(table)} t set published_at = clock_timestamp(), event_id = p.event_id
             from unnest($1::uuid[], $2::text[]) as p(id, event_id) where t.id = p.id and t.published_at is null`,
    values: [published.map(({ id }) => id), published.map(({ eventId }) => eventId)],
  });
}

export async function markProblems(
  client: Pool | Client,
  table: string,
  problems: readonly { readonly id: string; readonly problem: string }[],
): Promise<void> {
  if (problems.length === 0) return;
  await client.query({
    name: 'relay_problems',
    text: `update ${quoteName(table)} t set problem = p.problem
             from unnest($1::uuid[], $2::text[]) as p(id, problem) where t.id = p.id`,
    values: [problems.map(({ id }) => id), problems.map(({ problem }) => problem)],
  });
}

/** Age of the oldest waiting row. Null: none waits. */
export async function readOldestWaitingSeconds(pool: Pool, table: string): Promise<number | null> {
  const { rows } = await pool.query<{ age: number }>({
    name: 'relay_oldest',
    text: `select extract(epoch from clock_timestamp() - created_at)::float8 as age
             from ${quoteName(table)} where ${WAITING} order by seq limit 1`,
  });
  return rows[0] === undefined ? null : Math.max(0, rows[0].age);
}

export interface SourceFacts {
  readonly database: string;
  readonly user: string;
  readonly serverVersion: number;
  readonly walLevel: string;
  readonly mayReplicate: boolean;
  readonly isStandby: boolean;
  /** The table's schema and name. Null: it does not exist, or is not on the search path. */
  readonly table: { readonly schema: string; readonly name: string } | null;
  readonly missingPrivileges: readonly string[];
  readonly missingColumns: readonly string[];
  readonly hasPublication: boolean;
}

const COLUMNS = ['id', 'seq', 'data', ...TEXT_COLUMNS, 'published_at', 'event_id', 'problem'];

/** Everything that can be wrong with a source, in one query. */
export async function readSourceFacts(
  pool: Pool,
  { table, publication }: Pick<OutboxNames, 'table' | 'publication'>,
): Promise<SourceFacts> {
  const { rows } = await pool.query<{
    database: string;
    user: string;
    version: string;
    wal_level: string;
    may_replicate: boolean;
    is_standby: boolean;
    schema: string | null;
    name: string | null;
    missing_privileges: string[] | null;
    missing_columns: string[] | null;
    has_publication: boolean;
  }>(
    `select current_database() as database, current_user as user, current_setting('server_version_num') as version,
            current_setting('wal_level') as wal_level, pg_is_in_recovery() as is_standby,
            (select rolreplication or rolsuper from pg_roles where rolname = current_user) as may_replicate,
            n.nspname as schema, c.relname as name,
            (select array_agg(p) from unnest(array['select', 'update', 'delete']) as p
              where c.oid is not null and not has_table_privilege(c.oid, p)) as missing_privileges,
            (select array_agg(w) from unnest($2::text[]) as w
              where c.oid is not null and not exists (
                select from pg_attribute a where a.attrelid = c.oid and a.attname = w and not a.attisdropped)
            ) as missing_columns,
            exists (select from pg_publication where pubname = $3) as has_publication
       from (select to_regclass($1) as oid) wanted
       left join pg_class c on c.oid = wanted.oid left join pg_namespace n on n.oid = c.relnamespace`,
    [quoteName(table), COLUMNS, publication],
  );
  const row = rows[0]!;
  return {
    database: row.database,
    user: row.user,
    serverVersion: Number(row.version),
    walLevel: row.wal_level,
    mayReplicate: row.may_replicate,
    isStandby: row.is_standby,
    table: row.name === null ? null : { schema: row.schema!, name: row.name },
    missingPrivileges: row.missing_privileges ?? [],
    missingColumns: row.missing_columns ?? [],
    hasPublication: row.has_publication,
  };
}

export interface SlotState {
  readonly database: string | null;
  readonly plugin: string | null;
  readonly active: boolean;
  /** True if the server has removed log that the slot still needs: the slot is useless then. */
  readonly lost: boolean;
  readonly confirmedLsn: string | null;
  readonly retainedBytes: number;
  /** The source's clock, by which the age of its transactions is measured. */
  readonly now: number;
}

export async function readSlot(pool: Pool, slot: string): Promise<SlotState | null> {
  const { rows } = await pool.query<{
    database: string | null;
    plugin: string | null;
    active: boolean;
    wal_status: string | null;
    confirmed: string | null;
    retained: string | null;
    now: number;
  }>({
    name: 'relay_slot',
    text: `select database, plugin, active, wal_status, confirmed_flush_lsn::text as confirmed,
                  pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint as retained,
                  extract(epoch from clock_timestamp())::float8 * 1000 as now
             from pg_replication_slots where slot_name = $1`,
    values: [slot],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    database: row.database,
    plugin: row.plugin,
    active: row.active,
    lost: row.wal_status === 'lost',
    confirmedLsn: row.confirmed,
    retainedBytes: Math.max(0, Number(row.retained ?? 0)),
    now: row.now,
  };
}

/** Returns the position from which the slot can be read. */
export async function createSlot(pool: Pool, slot: string): Promise<string> {
  const { rows } = await pool.query<{ lsn: string }>(
    "select lsn::text from pg_create_logical_replication_slot($1, 'pgoutput')",
    [slot],
  );
  return rows[0]!.lsn;
}

export async function dropSlot(pool: Pool, slot: string): Promise<void> {
  await pool.query('select pg_drop_replication_slot($1)', [slot]);
}
