/** What `posthorn doctor` reads from a database. src/cli/doctor judges it. */

import type { Uuid } from '../../domain/ids.ts';
import type { Client } from '../database.ts';
import { WAITS_FOR_STANDBY } from './readiness.ts';

export interface ServerFacts {
  readonly versionNumber: number;
  readonly version: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly isStandby: boolean;
  /** Sessions of this role whose commit has waited for a synchronous standby for seconds. */
  readonly commitsWaiting: number;
  /** The connection limits that apply to this role, each with the number of connections that other programs use now. */
  readonly connectionLimits: readonly ConnectionLimit[];
  readonly now: number;
}

export interface ConnectionLimit {
  readonly of: 'server' | 'database' | 'role';
  readonly allowed: number;
  readonly usedByOthers: number;
}

const SETTINGS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'autovacuum',
  'track_counts',
  'wal_level',
  'default_transaction_read_only',
  'synchronous_standby_names',
];

export async function readServer(client: Client): Promise<ServerFacts> {
  const { rows } = await client.query<{
    version_number: number;
    version: string;
    settings: Record<string, string>;
    is_standby: boolean;
    commits_waiting: number;
  }>(
    `select current_setting('server_version_num')::int as version_number,
            current_setting('server_version') as version,
            (select json_object_agg(name, setting) from pg_settings where name = any($1::text[])) as settings,
            pg_is_in_recovery() as is_standby,
            (select count(*)::int from pg_stat_activity where ${WAITS_FOR_STANDBY}) as commits_waiting`,
    [SETTINGS],
  );
  const row = rows[0]!;
  const { rows: times } = await client.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  );
  return {
    versionNumber: row.version_number,
    version: row.version,
    settings: row.settings,
    isStandby: row.is_standby,
    commitsWaiting: row.commits_waiting,
    connectionLimits: await readConnectionLimits(client),
    now: times[0]!.now,
  };
}

/** Reads only the user and the database of other sessions: a role may not see more. */
async function readConnectionLimits(client: Client): Promise<ConnectionLimit[]> {
  const { rows } = await client.query<{
    of: ConnectionLimit['of'];
    allowed: number;
    used_by_others: number;
  }>(
    `with others as (
       select usename, datname from pg_stat_activity
        where usesysid is not null and datname is not null and coalesce(application_name, '') not like 'posthorn %'
     )
     select 'server' as of,
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
              - coalesce(current_setting('reserved_connections', true)::int, 0) as allowed,
            (select count(*)::int from others) as used_by_others
     union all
     select 'database', datconnlimit, (select count(*)::int from others o where o.datname = d.datname)
       from pg_database d where datname = current_database() and datconnlimit >= 0
     union all
     select 'role', rolconnlimit, (select count(*)::int from others o where o.usename = r.rolname)
       from pg_roles r where rolname = current_user and rolconnlimit >= 0 and not rolsuper`,
  );
  return rows.map(({ used_by_others, ...limit }) => ({ ...limit, usedByOthers: used_by_others }));
}

/** True if this role may change the schema, or may create it. */
export async function ownsSchema(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ owns: boolean }>(
    `select coalesce((select pg_has_role(nspowner, 'USAGE') from pg_namespace where nspname = 'posthorn'),
                     has_database_privilege(current_database(), 'CREATE')) as owns`,
  );
  return rows[0]!.owns;
}

/** Rights on the schema's objects that this role lacks, such as `INSERT on table posthorn.events`. */
export async function readMissingGrants(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ missing: string }>(
    `select privilege || ' on schema posthorn' as missing
       from pg_namespace n, unnest(array['USAGE']) privilege
      where n.nspname = 'posthorn' and not has_schema_privilege(n.oid, privilege)
     union all
     select privilege || ' on table posthorn.' || relname
       from pg_class, unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
      where relnamespace = (select oid from pg_namespace where nspname = 'posthorn') and relkind in ('r', 'p') and not relispartition
        and not (relname = 'schema_migrations' and privilege <> 'SELECT')
        and not has_table_privilege(pg_class.oid, privilege)
     union all
     select privilege || ' on sequence posthorn.' || relname
       from pg_class, unnest(array['USAGE', 'SELECT']) privilege
      where relnamespace = (select oid from pg_namespace where nspname = 'posthorn') and relkind = 'S'
        and not has_sequence_privilege(pg_class.oid, privilege)
     union all
     select 'EXECUTE on function posthorn.' || proname
       from pg_proc where pronamespace = (select oid from pg_namespace where nspname = 'posthorn') and not has_function_privilege(pg_proc.oid, 'EXECUTE')`,
  );
  return rows.map(({ missing }) => missing);
}

/**
 * Names of the migrations that were applied. Null: this database has no Posthorn schema. `forbidden`: this role may not
 * read them.
 */
export async function readAppliedMigrations(client: Client): Promise<string[] | 'forbidden' | null> {
  // Read the catalogue: functions that take a name fail if the role may not use the schema.
  const { rows: found } = await client.query<{ readable: boolean }>(
    `select has_schema_privilege(n.oid, 'USAGE') and has_table_privilege(c.oid, 'SELECT') as readable
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'posthorn' and c.relname = 'schema_migrations'`,
  );
  if (found[0] === undefined) return null;
  if (!found[0].readable) return 'forbidden';
  const { rows } = await client.query<{ name: string }>(
    'select name from posthorn.schema_migrations order by version',
  );
  return rows.map(({ name }) => name);
}

export interface WorkerFacts {
  readonly name: string;
  /** Of the default region. */
  readonly shards: number;
  readonly silentMs: number;
  readonly stopping: boolean;
}

export async function readWorkers(client: Client): Promise<{ workers: WorkerFacts[]; unowned: number }> {
  const { rows } = await client.query<{ name: string; shards: number; silent: number; stopping: boolean }>(
    `select w.name, w.stopping, extract(epoch from clock_timestamp() - w.renewed_at)::float8 * 1000 as silent,
            (select count(*)::int from posthorn.shards s where s.owner = w.id and s.shard < 256) as shards
       from posthorn.workers w order by w.name`,
  );
  const { rows: free } = await client.query<{ unowned: number }>(
    'select count(*)::int as unowned from posthorn.shards where owner is null and shard < 256',
  );
  return {
    workers: rows.map(({ silent, ...worker }) => ({ ...worker, silentMs: silent })),
    unowned: free[0]!.unowned,
  };
}

export interface PartitionFacts {
  readonly parent: string;
  readonly coversNow: boolean;
  readonly aheadMs: number;
  /** Gaps between partitions: times that no partition covers. */
  readonly gaps: number;
}

export async function readPartitions(client: Client): Promise<PartitionFacts[]> {
  const { rows } = await client.query<{
    parent: string;
    covers_now: boolean;
    ahead: number | null;
    gaps: number;
  }>(
    `select t.parent, coalesce(bool_or(now() >= from_at and now() < to_at), false) as covers_now,
            extract(epoch from max(to_at) - now())::float8 * 1000 as ahead,
            count(*) filter (where next_from > to_at)::int as gaps
       from unnest(array['events', 'deliveries', 'attempts']) as t(parent)
       left join (select *, lead(from_at) over (partition by parent order by from_at) as next_from
                    from posthorn.partitions where state = 'attached') p on p.parent = t.parent
      group by t.parent order by t.parent`,
  );
  return rows.map((row) => ({
    parent: row.parent,
    coversNow: row.covers_now,
    aheadMs: row.ahead ?? 0,
    gaps: row.gaps,
  }));
}

export interface SealedSecret {
  readonly endpointId: Uuid;
  readonly keyId: string;
  readonly ciphertext: Buffer;
  /** How many secrets are sealed with this key. */
  readonly count: number;
}

/** One secret for each encryption key that is in use. */
export async function sampleSecrets(client: Client): Promise<SealedSecret[]> {
  const { rows } = await client.query<{
    endpoint_id: Uuid;
    key_id: string;
    ciphertext: Buffer;
    count: number;
  }>(
    `select distinct on (key_id) endpoint_id, key_id, ciphertext, (count(*) over (partition by key_id))::int as count
       from posthorn.endpoint_secrets order by key_id, id desc`,
  );
  return rows.map((row) => ({
    endpointId: row.endpoint_id,
    keyId: row.key_id,
    ciphertext: row.ciphertext,
    count: row.count,
  }));
}

/** URLs of some enabled endpoints. */
export async function sampleUrls(client: Client, limit: number): Promise<string[]> {
  const { rows } = await client.query<{ url: string }>(
    'select url from posthorn.endpoints where enabled and deleted_at is null order by id desc limit $1',
    [limit],
  );
  return rows.map(({ url }) => url);
}
