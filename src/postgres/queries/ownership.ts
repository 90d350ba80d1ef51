import type { Uuid } from '../../domain/ids.ts';
import { DEFAULT_REGION } from '../../domain/region.ts';
import type {
  OtherWorker,
  OwnedShard,
  Renewal,
  RenewalOptions,
  SilentWorker,
  StoreFacts,
  TakenShard,
  WorkerRegistration,
} from '../../ports/ownership-store.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { isOutage } from '../failures.ts';
import { SETTLE_TIME } from './expunge-batches.ts';

/** SQL: the shard that the lane of an endpoint is in. */
export const shardOfLane = (endpointId: string): string =>
  `coalesce((select e.shard from posthorn.endpoints e where e.id = ${endpointId}), get_byte(uuid_send(${endpointId}), 15))`;

/** SQL: the worker that owns the lane of an endpoint. Scalar subqueries, because sessions forbid some kinds of joins. */
export const ownerOfLane = (endpointId: string): string =>
  `(select s.owner from posthorn.shards s where s.shard = ${shardOfLane(endpointId)})`;

export async function registerWorker(
  client: Client,
  worker: WorkerRegistration & { readonly lockKey: string },
): Promise<void> {
  const region = worker.region === null ? DEFAULT_REGION : await createRegion(client, worker.region);
  await client.query('select pg_advisory_lock($1)', [worker.lockKey]);
  // A known worker has only a new session and lock. Registering does not renew its lease.
  await client.query(
    `insert into posthorn.workers (id, name, lock_key, wire_version, region) values ($1, $2, $3, $4, $5)
         on conflict (id) do update set lock_key = excluded.lock_key`,
    [worker.id, worker.name, worker.lockKey, worker.wireVersion, region],
  );
}

/** Returns the number of the region. Throws if a worker is registered that does not know regions. */
async function createRegion(client: Client, name: string): Promise<number> {
  const { rows } = await client.query<{ number: number }>('select posthorn.create_region($1) as number', [
    name,
  ]);
  return rows[0]!.number;
}

/** Whether a worker is registered that knows neither notifiers nor the redaction of attempts (src/dispatch/ownership.ts). */
export async function hasEarlierWorkers(client: Queryable): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    'select exists (select from posthorn.workers where wire_version < 2) as found',
  );
  return rows[0]!.found;
}

/** SQL: 256 shards divided by the number of registered workers of the region that are not stopping, rounded up. */
const fairShare = (region: string): string =>
  `ceil(256.0 / greatest(1, (select count(*) from posthorn.workers where not stopping and region = ${region})))`;

/** SQL: whether a shard belongs to the region. */
const isIn = (region: string, shard: string): string =>
  `${shard} between ${region} * 256 and ${region} * 256 + 255`;

/**
 * SQL: identifies the last renewal of a worker. The count alone is not enough, because workers of earlier versions do not
 * count. The time alone is not either, because the clock may step back.
 */
const renewalOf = (worker: string): string =>
  `${worker}.renewals || ' ' || extract(epoch from ${worker}.renewed_at)`;

// Renews the lease and returns our shards in one statement. No row: other workers declared us dead. The commit does not
// wait for the disk: a crash of the database ends every lease anyway, and a slow disk must not stop deliveries. It does
// wait for a synchronous standby: a primary that has been replaced must not renew leases. If `is_balanced` is true,
// the worker skips the other statements of a heartbeat: in a quiet deployment they were most of the database's work.
// `expunged_events` has no limit: an event that is left out might be sent.
const RENEW = {
  name: 'renew',
  text: `
    with before as materialized (select renewals, region from posthorn.workers where id = $1),
    counted as materialized (
      select count(*) filter (where s.owner = $1) as mine, coalesce(sum(s.epoch) filter (where s.owner = $1), 0) as epochs,
             count(*) filter (where s.owner = $1 and ${isIn('b.region', 's.shard')}) as mine_of_region,
             count(*) filter (where s.owner is null and ${isIn('b.region', 's.shard')}) as free
        from posthorn.shards s cross join before b
    ),
    renewed as (
      update posthorn.workers set renewed_at = clock_timestamp(), renewals = renewals + 1, stopping = $2 where id = $1
      returning id, renewals
    )
    select r.renewals as mark, (select renewals from before) as previous_mark,
           extract(epoch from clock_timestamp()) * 1000 as now,
           (select version from posthorn.subscription_version) as version,
           (select last_value from posthorn.acceptance_order) as last_seq,
           (select last_value from posthorn.outbox_seq_seq) as outbox_seq,
           case when (select mine = $3 and epochs = $4 from counted) then null
                else coalesce((select json_agg(json_build_object('shard', s.shard, 'epoch', s.epoch)) from posthorn.shards s
                                where s.owner = r.id), '[]') end as shards,
           (select free = 0 and mine_of_region <= ${fairShare('(select region from before)')} from counted) as is_balanced,
           array(select x.id from posthorn.expunged x
                  where x.kind = 'event' and x.settle_until > now() + ${SETTLE_TIME} - interval '2 minutes') as expunged_events,
           array(select w.id || ' ' || ${renewalOf('w')} from posthorn.workers w where w.id <> r.id) as others,
           case when $5 then array(select g.number from posthorn.regions g
                                    where not exists (select from posthorn.workers w where w.region = g.number and not w.stopping)
                                    order by g.number) end as regions_without_workers,
           case when current_setting('synchronous_standby_names') = ''
                then set_config('synchronous_commit', 'off', true) end
      from renewed r`,
};

export async function renew(
  client: Client,
  workerId: Uuid,
  options: RenewalOptions,
): Promise<Renewal | null> {
  const { rows } = await client.query<{
    now: string;
    version: string;
    last_seq: string;
    outbox_seq: string;
    mark: string;
    previous_mark: string;
    shards: OwnedShard[] | null;
    is_balanced: boolean;
    expunged_events: Uuid[];
    others: string[];
    regions_without_workers: number[] | null;
  }>({
    ...RENEW,
    values: [
      workerId,
      options.stopping,
      options.known?.count ?? null,
      options.known?.sumOfEpochs ?? null,
      options.listsEmptyRegions,
    ],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    shards: row.shards,
    expungedEvents: row.expunged_events,
    others: row.others.map((text) => readOther(text, Number(row.now))),
    isBalanced: row.is_balanced,
    emptyRegions: row.regions_without_workers,
    mark: Number(row.mark),
    previousMark: Number(row.previous_mark),
    now: Number(row.now),
    endpointVersion: Number(row.version),
    lastSeq: Number(row.last_seq),
    outboxSeq: Number(row.outbox_seq),
  };
}

/** Parses `id renewals renewedAt`. The database sends this text because it is shorter than a JSON object. */
function readOther(text: string, now: number): OtherWorker {
  const [id, ...renewal] = text.split(' ');
  return { id: id!, renewal: renewal.join(' '), silentMs: now - Number(renewal[1]) * 1000 };
}

/** Reads the facts of a renewal, for processes that own no shards. */
export async function readFacts(pool: Pool): Promise<StoreFacts> {
  const { rows } = await pool.query<{ now: string; version: string; last_seq: string; outbox_seq: string }>({
    name: 'read_facts',
    text: `
      select extract(epoch from clock_timestamp()) * 1000 as now, v.version, o.last_value as last_seq, x.last_value as outbox_seq
        from posthorn.subscription_version v, posthorn.acceptance_order o, posthorn.outbox_seq_seq x`,
  });
  const row = rows[0]!;
  return {
    now: Number(row.now),
    endpointVersion: Number(row.version),
    lastSeq: Number(row.last_seq),
    outboxSeq: Number(row.outbox_seq),
  };
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
// (and the worker lives) or finds no row.
const REMOVE_DEAD = {
  name: 'remove_dead_workers',
  text: `
    with silent as (
      select w.id from posthorn.workers w join unnest($1::uuid[], $2::text[], $3::boolean[]) as s(id, renewal, is_overdue) on w.id = s.id
       where ${renewalOf('w')} = s.renewal
         and (s.is_overdue
              or not exists (select from pg_locks l
                              where l.locktype = 'advisory' and l.granted and l.objsubid = 1
                                and l.database = (select oid from pg_database where datname = current_database())
                                and ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key))
         for update of w skip locked
    ),
    removed as (delete from posthorn.workers w using silent s where w.id = s.id returning w.id, w.name)
    update posthorn.shards s
       set owner = null, epoch = nextval('posthorn.shard_epoch'),
           unclean_at = (array_prepend(clock_timestamp(), s.unclean_at))[1:8]
      from removed r where s.owner = r.id
    returning r.name as worker, s.shard`,
};

/** Removes those of these workers that have not renewed since. Returns one entry per freed shard. */
export async function removeDeadWorkers(
  client: Client,
  silent: readonly SilentWorker[],
): Promise<{ worker: string; shard: number }[]> {
  const { rows } = await client.query<{ worker: string; shard: number }>({
    ...REMOVE_DEAD,
    values: [
      silent.map(({ id }) => id),
      silent.map(({ renewal }) => renewal),
      silent.map(({ isOverdue }) => isOverdue),
    ],
  });
  return rows;
}

// The fair share is 256 divided by the number of living workers of the region. The CTE is materialized: the update must not
// evaluate `skip locked … limit` again. $3: the region whose shards are taken. A worker may take shards of another
// region, up to the same share, only while that region has no worker.
const TAKE_SHARDS = {
  name: 'take_shards',
  text: `
    with me as materialized (select region from posthorn.workers where id = $1 and not stopping),
    wanted as materialized (
      select coalesce($3::smallint, me.region) as region from me
       where coalesce($3, me.region) = me.region
          or not exists (select from posthorn.workers w where w.region = $3 and not w.stopping)
    ),
    mine as (select count(*) as n from posthorn.shards s, wanted where s.owner = $1 and ${isIn('wanted.region', 's.shard')}),
    free as materialized (
      select s.shard from posthorn.shards s
       where s.owner is null and ${isIn('(select region from wanted)', 's.shard')} order by s.shard
         for update skip locked
       limit greatest(0, ${fairShare('(select region from me)')} - (select n from mine))
    )
    update posthorn.shards s set owner = $1, epoch = nextval('posthorn.shard_epoch'), taken_at = clock_timestamp()
      from free f where s.shard = f.shard and exists (select from posthorn.workers w where w.id = $1 and not w.stopping)
    returning s.shard, s.epoch, s.unclean_at[1] as last_unclean,
              (select count(*) from unnest(s.unclean_at) u
                where u between clock_timestamp() - make_interval(secs => $2::float8 / 1000) and clock_timestamp()) as crashes`,
};

/** Takes free shards of the worker's region, or of another one that has no worker. */
export async function takeShards(
  client: Client,
  workerId: Uuid,
  crashWindowMs: number,
  emptyRegion: number | null,
): Promise<TakenShard[]> {
  const { rows } = await client.query<{ shard: number; epoch: string; crashes: string }>({
    ...TAKE_SHARDS,
    values: [workerId, crashWindowMs, emptyRegion],
  });
  return rows.map((row) => ({ shard: row.shard, epoch: Number(row.epoch), crashes: Number(row.crashes) }));
}

/** How many shards of its region this worker holds beyond its share. */
export async function countSurplusShards(client: Client, workerId: Uuid): Promise<number> {
  const { rows } = await client.query<{ surplus: string }>(
    `select (select count(*) from posthorn.shards s where s.owner = me.id and ${isIn('me.region', 's.shard')})
            - ${fairShare('me.region')} as surplus
       from posthorn.workers me where me.id = $1`,
    [workerId],
  );
  return Math.max(0, Number(rows[0]?.surplus ?? 0));
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
