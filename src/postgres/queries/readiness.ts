import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';

/** SQL: whether a session of `pg_stat_activity` waits for a synchronous standby. A role sees this only of its own sessions. */
export const WAITS_FOR_STANDBY =
  "wait_event = 'SyncRep' and clock_timestamp() - state_change > interval '3 s'";

/** Facts that tell whether events can be accepted and whether workers deliver them. */
export interface ReadinessFacts {
  /** True on a standby, or if a default of the role or the database forbids writes. */
  readonly isReadOnly: boolean;
  /** True if commits wait for a synchronous standby that does not answer. */
  readonly isStandbyAway: boolean;
  /** True if a partition covers the present time. */
  readonly hasPartition: boolean;
  /** Shards of the default region whose worker has renewed its lease recently. */
  readonly ownedShards: number;
  /** Those of them whose worker cannot read deliveries or record results. */
  readonly stalledShards: number;
}

export async function readReadiness(pool: Pool, deadAfterMs: number): Promise<ReadinessFacts> {
  const { rows } = await pool.query<{
    is_read_only: boolean;
    is_standby_away: boolean;
    has_partition: boolean;
    owned: number;
    stalled: number;
  }>({
    name: 'read_readiness',
    text: `
      select current_setting('transaction_read_only') = 'on' as is_read_only,
             case when current_setting('synchronous_standby_names') = '' then false
                  else exists (select from pg_stat_activity where ${WAITS_FOR_STANDBY}) end as is_standby_away,
             exists (select from posthorn.partitions
                      where parent = 'events' and now() >= from_at and now() < to_at) as has_partition,
             counted.owned, counted.stalled
        from (select count(*)::int as owned, (count(*) filter (where w.stalled_since is not null))::int as stalled
                from posthorn.shards s join posthorn.workers w on w.id = s.owner
               where s.shard < 256 and w.renewed_at > clock_timestamp() - make_interval(secs => $1::float8 / 1000)
                 and w.renewed_at < clock_timestamp() + make_interval(secs => $1::float8 / 1000)) as counted`,
    values: [deadAfterMs],
  });
  const row = rows[0]!;
  return {
    isReadOnly: row.is_read_only,
    isStandbyAway: row.is_standby_away,
    hasPartition: row.has_partition,
    ownedShards: row.owned,
    stalledShards: row.stalled,
  };
}

/** Records whether a worker that renews its lease cannot read deliveries or record results. */
export async function reportStall(pool: Pool, workerId: Uuid, isStalled: boolean): Promise<void> {
  await pool.query(
    'update posthorn.workers set stalled_since = case when $2 then clock_timestamp() end where id = $1',
    [workerId, isStalled],
  );
}
