import type { Uuid } from '../../domain/ids.ts';
import type { DeadRateLimits } from '../../ports/upkeep-store.ts';
import type { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Client, Pool } from '../database.ts';
import { closeLeftBatches } from './batches.ts';

/** Returns false if another transaction holds the lock. The lock ends with the transaction, also if the process dies. */
export async function tryLock(
  client: Client,
  lock: (typeof ADVISORY_LOCKS)[keyof typeof ADVISORY_LOCKS],
): Promise<boolean> {
  const { rows } = await client.query<{ is_locked: boolean }>({
    name: 'try_upkeep_lock',
    text: 'select pg_try_advisory_xact_lock($1) as is_locked',
    values: [lock],
  });
  return rows[0]!.is_locked;
}

/**
 * Endpoints most of whose deliveries died within the last day. Hours that began before the endpoint was last enabled do
 * not count, or it would be disabled again at once. Deliveries count only if their last attempt failed: the
 * receiver is not to blame for those that expired while the endpoint was paused. Reads 25 rows per endpoint, by the hour.
 *
 * A receiver that rejects everything for a minute after a bad deployment must not be disabled: its dead deliveries must
 * span `minMs`, and their share must still be exceeded within the last `minMs`. Reads this by the quarter of an hour, only
 * for the endpoints that are left. The first quarter does not count, because its first death may be at its end.
 */
export async function findEndpointsByDeadRate(pool: Pool, limits: DeadRateLimits): Promise<Uuid[]> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `with dying as materialized (
     select e.id, e.enabled_since
       from posthorn.endpoint_stats s join posthorn.endpoints e on e.id = s.endpoint_id
      where s.seconds = 3600 and s.at > now() - interval '24 hours' and e.enabled and e.deleted_at is null
        and (e.enabled_since is null or s.at > e.enabled_since)
      group by e.id
     having sum(s.delivered + s.failures - s.retried) >= $2
        and sum(s.failures - s.retried) > $1::float8 * sum(s.delivered + s.failures - s.retried)
     )
     select d.id from dying d
      where $3::float8 = 0 or exists (
        select from posthorn.endpoint_stats q
         where q.endpoint_id = d.id and q.seconds = 900 and q.at > now() - interval '24 hours'
           and (d.enabled_since is null or q.at > d.enabled_since)
        having max(q.at) filter (where q.failures > q.retried) - min(q.at) filter (where q.failures > q.retried)
                 >= make_interval(secs => $3 / 1000 + 900)
           and sum(q.failures - q.retried) filter (where q.at > now() - make_interval(secs => $3 / 1000))
                 > $1::float8 * sum(q.delivered + q.failures - q.retried)
                     filter (where q.at > now() - make_interval(secs => $3 / 1000)))`,
    [limits.deadRate, limits.minDeliveries, limits.minMs],
  );
  return rows.map((row) => row.id);
}

/** Endpoints that have failed for this long, up to their latest attempt, without a success. */
export async function findFailingEndpoints(pool: Pool, failingMs: number): Promise<Uuid[]> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `select e.id
       from posthorn.endpoint_health h join posthorn.endpoints e on e.id = h.endpoint_id
      where h.failing_since <= h.updated_at - make_interval(secs => $1::float8 / 1000)
        and e.enabled and e.deleted_at is null`,
    [failingMs],
  );
  return rows.map((row) => row.id);
}

/** Deletes a chunk of expired idempotency keys. Skips keys that an event is taking over at this moment. */
export async function deleteExpiredKeys(pool: Pool, chunk: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.idempotency_keys
      where ctid = any (array(select ctid from posthorn.idempotency_keys where expires_at <= now()
                               order by expires_at limit $1 for update skip locked))`,
    [chunk],
  );
  return rowCount ?? 0;
}

/** Deletes a chunk of statistics that no window of the API reaches any more. */
export async function deleteOldStats(
  pool: Pool,
  { seconds, keepHours, chunk }: { seconds: number; keepHours: number; chunk: number },
): Promise<number> {
  let deleted = 0;
  for (const table of ['posthorn.endpoint_stats', 'posthorn.event_stats']) {
    const { rowCount } = await pool.query(
      `delete from ${table}
        where ctid = any (array(select ctid from ${table}
                                 where seconds = $1 and at < now() - make_interval(hours => $2) order by at limit $3))`,
      [seconds, keepHours, chunk],
    );
    deleted = Math.max(deleted, rowCount ?? 0);
  }
  return deleted;
}

/** Deletes expired secrets, tasks that ended long ago, workers that disappeared and own nothing, and other remains. */
export async function deleteLeftovers(pool: Pool, days: number): Promise<void> {
  await pool.query("delete from posthorn.endpoint_secrets where expires_at < now() - interval '1 day'");
  await pool.query('delete from posthorn.tasks where finished_at < now() - make_interval(days => $1)', [
    days,
  ]);
  await pool.query(
    `delete from posthorn.workers w
      where w.renewed_at < clock_timestamp() - interval '1 day'
        and not exists (select from posthorn.shards s where s.owner = w.id)`,
  );
  await closeLeftBatches(pool);
  // Keys of deliveries that have ended, and windows of mode `first` in which nothing can arrive any more.
  await pool.query(
    `delete from posthorn.debounce_keys k
      where k.since < now() - interval '1 hour' and not exists (select from posthorn.queue q where q.id = k.delivery_id)`,
  );
  await pool.query("delete from posthorn.debounce_windows where until < now() - interval '1 day'");
  await pool.query('delete from posthorn.restored_ranges where until < now()');
  await pool.query("delete from posthorn.confirmation_mails where sent_at < now() - interval '1 day'");
  // What was recorded about endpoints of a tenant after it was expunged: results of requests that were on the wire.
  for (const table of [
    'endpoint_health',
    'endpoint_stats',
    'endpoint_skips',
    'operational_notes',
    'batches',
    'open_batches',
    'debounce_keys',
    'debounce_windows',
    'debounced',
  ])
    await pool.query(
      `delete from posthorn.${table} r using posthorn.expunged x
        where x.kind = 'tenant' and x.applied_at > now() - interval '1 day' and r.endpoint_id = any (x.endpoint_ids)`,
    );
  // States of deleted endpoints, and windows of dead letters that ended long ago.
  await pool.query(
    `delete from posthorn.operational_state s
      where s.at < now() - interval '2 days' and s.subject <> '' and (s.kind = 'posthorn.delivery.dead'
         or exists (select from posthorn.endpoints e where e.id = s.subject::uuid and e.deleted_at is not null))`,
  );
}
