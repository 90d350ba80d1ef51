/** Sizes and ages of what is stored. Reads catalogues and the ends of indexes only. */
import { timeOfId, type Uuid } from '../../domain/ids.ts';
import type { PartitionedTable } from '../../domain/retention.ts';
import {
  type StorageKind,
  type StoredKind,
  type StoredPartition,
  storageKinds,
} from '../../domain/storage.ts';
import type { Queryable } from '../database.ts';

export interface StorageFacts {
  readonly kinds: Readonly<Record<StorageKind, StoredKind>>;
  /** All of this database, with the tables of other applications. */
  readonly databaseBytes: number;
  /** Partitions of events, deliveries and attempts, without those that only contain rows that outlived their retention. */
  readonly partitions: readonly (StoredPartition & { readonly table: PartitionedTable })[];
  /** Dead letters that retention discarded in the last 30 days. */
  readonly deadLettersExpired: number;
  /** Directory of the server's data, if this connection may know it and comes from the same machine. */
  readonly localDirectory: string | null;
}

/** Tables that are not listed are `other`. */
const KIND_OF_TABLE: Readonly<Record<string, StorageKind>> = {
  events: 'events',
  deliveries: 'deliveries',
  attempts: 'attempts',
  queue: 'queue',
  fan_out_slices: 'queue',
  dead_letters: 'dead_letters',
  converted_payloads: 'converted_payloads',
  batches: 'batches',
  open_batches: 'batches',
  debounce_keys: 'debounce',
  debounce_windows: 'debounce',
  debounced: 'debounce',
  outbox: 'outbox',
  outbox_rejected: 'outbox',
  relay_rejected: 'outbox',
  kafka_records: 'outbox',
  idempotency_keys: 'idempotency',
  idempotent_requests: 'idempotency',
  inboxes: 'inboxes',
  inbox_requests: 'inboxes',
  audit_log: 'audit',
  endpoint_stats: 'statistics',
  event_stats: 'statistics',
  stats_journal: 'statistics',
};

/**
 * Rows as ANALYZE last saw them, or as PostgreSQL has counted them since. A new table is not analyzed for minutes; after a
 * crash, the counting begins again.
 */
const ESTIMATED_ROWS = 'greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)';

/** All tables. `$1`: the kinds by table. */
const TABLES = `
  select c.oid, c.relpages, c.reltoastrelid, ${ESTIMATED_ROWS} as rows, $1::jsonb ->> coalesce(p.parent, c.relname) as kind
    from pg_class c left join posthorn.partitions p on p.name = c.relname
   where c.relnamespace = 'posthorn'::regnamespace and c.relkind = 'r'`;

/** The size as VACUUM and ANALYZE last saw it. Reading the exact size would wait for every lock on the table, and these tables are small. */
const ESTIMATED_BYTES = `
  current_setting('block_size')::int * (t.relpages
    + coalesce((select o.relpages from pg_class o where o.oid = t.reltoastrelid), 0)
    + coalesce((select sum(i.relpages) from pg_index x join pg_class i on i.oid = x.indexrelid
                 where x.indrelid in (t.oid, t.reltoastrelid)), 0))`;

export async function readStorage(client: Queryable): Promise<StorageFacts> {
  const { rows: sizes } = await client.query<{ kind: StorageKind; bytes: number; rows: number }>(
    `select t.kind, sum(pg_total_relation_size(t.oid))::float8 as bytes, sum(t.rows)::float8 as rows
       from (${TABLES}) as t where t.kind is not null group by t.kind
     union all
     select 'other', sum(${ESTIMATED_BYTES})::float8, sum(t.rows)::float8
       from (${TABLES}) as t where t.kind is null`,
    [JSON.stringify(KIND_OF_TABLE)],
  );
  const oldest = await readOldest(client);
  const { rows: partitions } = await client.query<{
    table: PartitionedTable;
    from_ms: number;
    to_ms: number;
    bytes: number;
  }>(
    `select p.parent as table, extract(epoch from p.from_at)::float8 * 1000 as from_ms,
            extract(epoch from p.to_at)::float8 * 1000 as to_ms, pg_total_relation_size(c.oid)::float8 as bytes
       from posthorn.partitions p
       join pg_class c on c.relname = p.name and c.relnamespace = 'posthorn'::regnamespace
      where p.state = 'attached' and not p.kept`,
  );
  const { rows: server } = await client.query<{ bytes: number; expired: number; directory: string | null }>(
    `select pg_database_size(current_database())::float8 as bytes,
            (select coalesce(sum(count), 0)::float8 from posthorn.expired_dead_letters
              where day > (now() at time zone 'UTC')::date - 30) as expired,
            case when inet_server_addr() is not distinct from inet_client_addr()
                  and pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') end as directory`,
  );
  const byKind = new Map(sizes.map((row) => [row.kind, row]));
  return {
    kinds: Object.fromEntries(
      storageKinds.map((kind) => [
        kind,
        {
          bytes: byKind.get(kind)?.bytes ?? 0,
          rows: Math.round(byKind.get(kind)?.rows ?? 0),
          oldestAt: oldest[kind],
        },
      ]),
    ) as Record<StorageKind, StoredKind>,
    databaseBytes: server[0]!.bytes,
    deadLettersExpired: server[0]!.expired,
    partitions: partitions.map(({ from_ms, to_ms, ...rest }) => ({ ...rest, fromMs: from_ms, toMs: to_ms })),
    localDirectory: server[0]!.directory,
  };
}

/** Kinds whose rows have ids that begin with their time. */
type IdKind =
  | 'events'
  | 'deliveries'
  | 'attempts'
  | 'queue'
  | 'audit'
  | 'converted_payloads'
  | 'batches'
  | 'debounce';
type TimeKind = 'dead_letters' | 'outbox' | 'inboxes' | 'statistics';

async function readOldest(client: Queryable): Promise<Record<StorageKind, number | null>> {
  const { rows } = await client.query<Record<IdKind, Uuid | null> & Record<TimeKind, number | null>>(
    `select (select id from posthorn.events order by id limit 1) as events,
            (select id from posthorn.deliveries order by id limit 1) as deliveries,
            (select delivery_id from posthorn.attempts order by delivery_id limit 1) as attempts,
            (select id from posthorn.queue order by id limit 1) as queue,
            (select id from posthorn.audit_log order by id limit 1) as audit,
            (select event_id from posthorn.converted_payloads order by event_id limit 1) as converted_payloads,
            (select id from posthorn.batches order by id limit 1) as batches,
            least((select delivery_id from posthorn.debounced order by delivery_id limit 1),
                  (select delivery_id from posthorn.debounce_keys order by delivery_id limit 1)) as debounce,
            (select extract(epoch from created_at)::float8 * 1000 from posthorn.outbox order by seq limit 1) as outbox,
            (select extract(epoch from min(received_at))::float8 * 1000 from posthorn.inbox_requests) as inboxes,
            (select extract(epoch from min(dead_at))::float8 * 1000 from posthorn.dead_letters) as dead_letters,
            (select extract(epoch from min(at))::float8 * 1000 from posthorn.event_stats where seconds = 3600) as statistics`,
  );
  const { dead_letters, outbox, inboxes, statistics, ...ids } = rows[0]!;
  const times = Object.fromEntries(
    Object.entries(ids).map(([kind, id]) => [kind, id === null ? null : timeOfId(id)]),
  ) as Record<IdKind, number | null>;
  // Keys have no index by the time of their creation.
  return { ...times, dead_letters, outbox, inboxes, statistics, idempotency: null, other: null };
}
