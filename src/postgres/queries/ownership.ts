import type { Uuid } from '../../domain/ids.ts';
import type {
  OwnedShard,
  OwnershipTimes,
  Renewal,
  StoreFacts,
  TakenShard,
} from '../../ports/ownership-store.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { isOutage } from '../failures.ts';

export async function registerWorker(
  client: Client,
  worker: { id: Uuid; name: string; lockKey: string; wireVersion: number },
): Promise<void> {
  await client.query('select pg_advisory_lock($1)', [worker.lockKey]);
  // A known worker has only a new session and lock. Registering does not renew its lease.
  await client.query(
    `insert into posthorn.workers (id, name, lock_key, wire_version) values ($1, $2, $3, $4)
         on conflict (id) do update set lock_key = excluded.lock_key`,
    [worker.id, worker.name, worker.lockKey, worker.wireVersion],
  );
}

/** Whether a worker is registered that knows neither notifiers nor the redaction of attempts (src/dispatch/ownership.ts). */
export async function hasEarlierWorkers(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select from posthorn.workers where wire_version < 2) as found',
  );
  return rows[0]!.found;
}

// Renews the lease and returns our shards in one statement. No row: other workers declared us dead. The commit does not
// wait for the disk: a crash of the database ends every lease anyway, and a slow disk must not stop deliveries. It does
// wait for a synchronous standby: a primary that has been replaced must not renew leases.
const RENEW = {
  name: 'renew',
  text: `
    with before as materialized (select renewed_at from posthorn.workers where id = $1),
    renewed as (
      update posthorn.workers set renewed_at = clock_timestamp(), stopping = $2 where id = $1 returning id, renewed_at
    )
    select extract(epoch from r.renewed_at) * 1000000 as mark,
           extract(epoch from (select renewed_at from before)) * 1000000 as previous_mark,
           extract(epoch from clock_timestamp()) * 1000 as now,
           (select version from posthorn.subscription_version) as version,
           (select last_value from posthorn.acceptance_order) as last_seq,
           coalesce((select json_agg(json_build_object('shard', s.shard, 'epoch', s.epoch)) from posthorn.shards s
                      where s.owner = r.id), '[]') as shards,
           case when current_setting('synchronous_standby_names') = ''
                then set_config('synchronous_commit', 'off', true) end
      from renewed r`,
};

export async function renew(client: Client, workerId: Uuid, stopping: boolean): Promise<Renewal | null> {
  const { rows } = await client.query<{
    now: string;
    version: string;
    last_seq: string;
    mark: string;
    previous_mark: string;
    shards: OwnedShard[];
  }>({
    ...RENEW,
    values: [workerId, stopping],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    shards: row.shards,
    mark: Number(row.mark),
    previousMark: Number(row.previous_mark),
    now: Number(row.now),
    endpointVersion: Number(row.version),
    lastSeq: Number(row.last_seq),
  };
}

/** Reads the facts of a renewal, for processes that own no shards. */
export async function readFacts(pool: Pool): Promise<StoreFacts> {
  const { rows } = await pool.query<{ now: string; version: string; last_seq: string }>({
    name: 'read_facts',
    text: `
      select extract(epoch from clock_timestamp()) * 1000 as now, v.version, o.last_value as last_seq
        from posthorn.subscription_version v, posthorn.acceptance_order o`,
  });
  const row = rows[0]!;
  return { now: Number(row.now), endpointVersion: Number(row.version), lastSeq: Number(row.last_seq) };
}

/** The cluster's identity and its timeline, which a promoted standby and a point-in-time recovery change. */
export async function readTimeline(pool: Pool): Promise<string | null> {
  try {
    const { rows } = await pool.query<{ timeline: string }>(
      `select system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline
         from pg_control_system()`,
    );
    return rows[0]!.timeline;
  } catch (error) {
    // Some managed services do not allow these functions, and a standby has no current position.
    if (isOutage(error)) throw error;
    return null;
  }
}

// pg_locks shows a bigint lock key as two halves. The row is locked first: a renewal at the same time either comes first
// (and the worker lives) or finds no row. A renewal in the future was made before the clock stepped back: it counts as
// a renewal of now, which is never earlier than the true one. Otherwise a dead worker would keep its shards until then.
const REMOVE_DEAD = {
  name: 'remove_dead_workers',
  text: `
    with early as (
      update posthorn.workers set renewed_at = clock_timestamp()
       where id = any (array(select id from posthorn.workers where renewed_at > clock_timestamp() for update skip locked))
    ),
    silent as (
      select w.id from posthorn.workers w
       where w.id <> $1
         and (w.renewed_at < clock_timestamp() - make_interval(secs => $3::float8 / 1000)
              or (w.renewed_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000)
                  and not exists (select from pg_locks l
                                   where l.locktype = 'advisory' and l.granted and l.objsubid = 1
                                     and l.database = (select oid from pg_database where datname = current_database())
                                     and ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key)))
         for update skip locked
    ),
    removed as (delete from posthorn.workers w using silent s where w.id = s.id returning w.id, w.name)
    update posthorn.shards s
       set owner = null, epoch = nextval('posthorn.shard_epoch'),
           unclean_at = (array_prepend(clock_timestamp(), s.unclean_at))[1:8]
      from removed r where s.owner = r.id
    returning r.name as worker, s.shard`,
};

/** Removes workers whose lease has ended and frees their shards. Returns one entry per freed shard. */
export async function removeDeadWorkers(
  client: Client,
  workerId: Uuid,
  times: OwnershipTimes,
): Promise<{ worker: string; shard: number }[]> {
  // A fifth longer than the lease: the clocks of two machines do not run at the same rate.
  const { rows } = await client.query<{ worker: string; shard: number }>({
    ...REMOVE_DEAD,
    values: [workerId, times.leaseMs * 1.2, times.deadAfterMs],
  });
  return rows;
}

// The fair share is 256 divided by the number of living workers. The CTE is materialized: the update must not evaluate
// `skip locked … limit` again.
const TAKE_SHARDS = {
  name: 'take_shards',
  text: `
    with living as (select count(*) as n from posthorn.workers where not stopping),
    mine as (select count(*) as n from posthorn.shards where owner = $1),
    free as materialized (
      select shard from posthorn.shards where owner is null order by shard
         for update skip locked
       limit greatest(0, (select ceil(256.0 / greatest(n, 1)) from living) - (select n from mine))
    )
    update posthorn.shards s set owner = $1, epoch = nextval('posthorn.shard_epoch'), taken_at = clock_timestamp()
      from free f where s.shard = f.shard and exists (select from posthorn.workers w where w.id = $1 and not w.stopping)
    returning s.shard, s.epoch, s.unclean_at[1] as last_unclean,
              (select count(*) from unnest(s.unclean_at) u
                where u between clock_timestamp() - make_interval(secs => $2::float8 / 1000) and clock_timestamp()) as crashes`,
};

export async function takeShards(
  client: Client,
  workerId: Uuid,
  crashWindowMs: number,
): Promise<TakenShard[]> {
  const { rows } = await client.query<{ shard: number; epoch: string; crashes: string }>({
    ...TAKE_SHARDS,
    values: [workerId, crashWindowMs],
  });
  return rows.map((row) => ({ shard: row.shard, epoch: Number(row.epoch), crashes: Number(row.crashes) }));
}

/** How many shards this worker holds beyond its share. */
export async function countSurplusShards(client: Client, workerId: Uuid): Promise<number> {
  const { rows } = await client.query<{ surplus: string }>(
    `select (select count(*) from posthorn.shards where owner = $1)
            - ceil(256.0 / greatest(1, (select count(*) from posthorn.workers where not stopping))) as surplus`,
    [workerId],
  );
  return Math.max(0, Number(rows[0]!.surplus));
}

export async function releaseShards(
  pool: Pool | Client,
  workerId: Uuid,
  shards: readonly number[],
): Promise<void> {
  await pool.query(
    'update posthorn.shards set owner = null where owner = $1 and shard = any($2::smallint[])',
    [workerId, shards],
  );
}

export async function unregisterWorker(pool: Pool | Client, workerId: Uuid): Promise<void> {
  await pool.query(
    `with removed_worker as (delete from posthorn.workers where id = $1)
     update posthorn.shards set owner = null where owner = $1`,
    [workerId],
  );
}
