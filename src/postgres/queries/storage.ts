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
  /** Directory of the server's data, if this connection may know it and comes from the same machine. */
  readonly localDirectory: string | null;
}

const KIND_OF_TABLE = `
  (values ('events', 'events'), ('deliveries', 'deliveries'), ('attempts', 'attempts'), ('queue', 'queue'),
          ('dead_letters', 'dead_letters'), ('audit_log', 'audit'), ('endpoint_stats', 'statistics'),
          ('event_stats', 'statistics')) as t(name, kind)`;

export async function readStorage(client: Queryable): Promise<StorageFacts> {
  const { rows: sizes } = await client.query<{ kind: StorageKind; bytes: number; rows: number }>(
    `select t.kind, sum(pg_total_relation_size(c.oid))::float8 as bytes, sum(greatest(c.reltuples, 0))::float8 as rows
       from ${KIND_OF_TABLE}
       left join posthorn.partitions p on p.parent = t.name and p.state = 'attached'
       join pg_class c on c.relname = coalesce(p.name, t.name) and c.relnamespace = 'posthorn'::regnamespace
      group by t.kind`,
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
  const { rows: server } = await client.query<{ bytes: number; directory: string | null }>(
    `select pg_database_size(current_database())::float8 as bytes,
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
    partitions: partitions.map(({ from_ms, to_ms, ...rest }) => ({ ...rest, fromMs: from_ms, toMs: to_ms })),
    localDirectory: server[0]!.directory,
  };
}

async function readOldest(client: Queryable): Promise<Record<StorageKind, number | null>> {
  const { rows } = await client.query<
    Record<'events' | 'deliveries' | 'attempts' | 'queue' | 'audit', Uuid | null> &
      Record<'dead_letters' | 'statistics', number | null>
  >(
    `select (select id from posthorn.events order by id limit 1) as events,
            (select id from posthorn.deliveries order by id limit 1) as deliveries,
            (select delivery_id from posthorn.attempts order by delivery_id limit 1) as attempts,
            (select id from posthorn.queue order by id limit 1) as queue,
            (select id from posthorn.audit_log order by id limit 1) as audit,
            (select extract(epoch from min(dead_at))::float8 * 1000 from posthorn.dead_letters) as dead_letters,
            (select extract(epoch from min(at))::float8 * 1000 from posthorn.event_stats where seconds = 3600) as statistics`,
  );
  const { events, deliveries, attempts, queue, audit, dead_letters, statistics } = rows[0]!;
  const time = (id: Uuid | null): number | null => (id === null ? null : timeOfId(id));
  return {
    events: time(events),
    deliveries: time(deliveries),
    attempts: time(attempts),
    queue: time(queue),
    audit: time(audit),
    dead_letters,
    statistics,
  };
}
