import type { Pool } from '../database.ts';

/** Facts that tell whether events can be accepted and whether workers deliver them. */
export interface ReadinessFacts {
  /** True on a standby, or if a default of the role or the database forbids writes. */
  readonly isReadOnly: boolean;
  /** True if a partition covers the present time. */
  readonly hasPartition: boolean;
  /** Shards whose worker has renewed its lease recently. */
  readonly ownedShards: number;
}

export async function readReadiness(pool: Pool, deadAfterMs: number): Promise<ReadinessFacts> {
  const { rows } = await pool.query<{ is_read_only: boolean; has_partition: boolean; owned: number }>({
    name: 'read_readiness',
    text: `
      select current_setting('transaction_read_only') = 'on' as is_read_only,
             exists (select from posthorn.partitions
                      where parent = 'events' and now() >= from_at and now() < to_at) as has_partition,
             (select count(*)::int from posthorn.shards s join posthorn.workers w on w.id = s.owner
               where w.renewed_at > clock_timestamp() - make_interval(secs => $1::float8 / 1000)
                 and w.renewed_at < clock_timestamp() + make_interval(secs => $1::float8 / 1000)) as owned`,
    values: [deadAfterMs],
  });
  const row = rows[0]!;
  return { isReadOnly: row.is_read_only, hasPartition: row.has_partition, ownedShards: row.owned };
}
