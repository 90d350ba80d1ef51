/** What `posthorn doctor` reads from a database. It is judged in src/cli/doctor. */
import type { Uuid } from '../../domain/ids.ts';
import type { Client } from '../database.ts';

export interface ServerFacts {
  readonly versionNumber: number;
  readonly version: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly isStandby: boolean;
  /** How many connections this role may open, and how many other programs use now. */
  readonly connectionsAllowed: number;
  readonly connectionsOfOthers: number;
  readonly now: number;
}

const SETTINGS = [
  'fsync',
  'full_page_writes',
  'synchronous_commit',
  'autovacuum',
  'track_counts',
  'wal_level',
  'default_transaction_read_only',
];

export async function readServer(client: Client): Promise<ServerFacts> {
  const { rows } = await client.query<{
    version_number: number;
    version: string;
    settings: Record<string, string>;
    is_standby: boolean;
    allowed: number;
    others: number;
  }>(
    `select current_setting('server_version_num')::int as version_number,
            current_setting('server_version') as version,
            (select json_object_agg(name, setting) from pg_settings where name = any($1::text[])) as settings,
            pg_is_in_recovery() as is_standby,
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as allowed,
            (select count(*)::int from pg_stat_activity
              where backend_type = 'client backend' and application_name not like 'posthorn %') as others`,
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
    connectionsAllowed: row.allowed,
    connectionsOfOthers: row.others,
    now: times[0]!.now,
  };
}

/** Names of the migrations that were applied. Null: this database has no Posthorn schema. */
export async function readAppliedMigrations(client: Client): Promise<string[] | null> {
  const { rows: found } = await client.query<{ found: string | null }>(
    "select to_regclass('posthorn.schema_migrations') as found",
  );
  if (found[0]!.found === null) return null;
  const { rows } = await client.query<{ name: string }>(
    'select name from posthorn.schema_migrations order by version',
  );
  return rows.map(({ name }) => name);
}

export interface WorkerFacts {
  readonly name: string;
  readonly shards: number;
  readonly silentMs: number;
  readonly stopping: boolean;
}

export async function readWorkers(client: Client): Promise<{ workers: WorkerFacts[]; unowned: number }> {
  const { rows } = await client.query<{ name: string; shards: number; silent: number; stopping: boolean }>(
    `select w.name, w.stopping, extract(epoch from clock_timestamp() - w.renewed_at)::float8 * 1000 as silent,
            (select count(*)::int from posthorn.shards s where s.owner = w.id) as shards
       from posthorn.workers w order by w.name`,
  );
  const { rows: free } = await client.query<{ unowned: number }>(
    'select count(*)::int as unowned from posthorn.shards where owner is null',
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
                    from posthorn.partitions) p on p.parent = t.parent
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
  /** How many are sealed with this key. */
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
