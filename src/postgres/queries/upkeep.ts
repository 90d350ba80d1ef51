import type { Uuid } from '../../domain/ids.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';

const UPKEEP_LOCK = 7_283_640_003;

/** Runs `work` if no other process is at it just now. The lock ends with its transaction, also by kill -9. */
export async function aloneInUpkeep(pool: Pool, work: () => Promise<void>): Promise<boolean> {
  return inTransaction(pool, async (client: Client) => {
    const { rows } = await client.query<{ mine: boolean }>('select pg_try_advisory_xact_lock($1) as mine', [
      UPKEEP_LOCK,
    ]);
    if (rows[0]!.mine) await work();
    return rows[0]!.mine;
  });
}

const JOURNAL_LOCK = 7_283_640_004;

/** Whether this transaction, and no other, may add up the journal. */
export async function aloneWithJournal(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>({
    name: 'lock_stats_journal',
    text: 'select pg_try_advisory_xact_lock($1) as mine',
    values: [JOURNAL_LOCK],
  });
  return rows[0]!.mine;
}

/**
 * Endpoints most of whose deliveries died within the day. Hours that began before it was last switched on do not
 * count, or it would be switched off again at once. A day is 25 rows an endpoint, found by the hour. Only what died of
 * its last attempt counts: that deliveries grew too old while it was paused is not the receiver's fault.
 */
export async function endpointsDying(
  pool: Pool,
  limits: { deadRate: number; minDeliveries: number },
): Promise<Uuid[]> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `select e.id
       from posthorn.endpoint_stats s join posthorn.endpoints e on e.id = s.endpoint_id
      where s.seconds = 3600 and s.at > now() - interval '24 hours' and e.enabled and e.deleted_at is null
        and (e.enabled_since is null or s.at > e.enabled_since)
      group by e.id
     having sum(s.delivered + s.failures - s.retried) >= $2
        and sum(s.failures - s.retried) > $1::float8 * sum(s.delivered + s.failures - s.retried)`,
    [limits.deadRate, limits.minDeliveries],
  );
  return rows.map((row) => row.id);
}

/** Endpoints that failed then, have failed lately, and never succeeded in between. */
export async function endpointsFailing(pool: Pool, failingMs: number): Promise<Uuid[]> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `select e.id
       from posthorn.endpoint_health h join posthorn.endpoints e on e.id = h.endpoint_id
      where h.failing_since <= h.updated_at - make_interval(secs => $1::float8 / 1000)
        and e.enabled and e.deleted_at is null`,
    [failingMs],
  );
  return rows.map((row) => row.id);
}

/** Idempotency keys whose time is over, a chunk at a time; one that is just being taken over is left alone. */
export async function deleteExpiredKeys(pool: Pool, chunk: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.idempotency_keys
      where ctid = any (array(select ctid from posthorn.idempotency_keys where expires_at <= now()
                               order by expires_at limit $1 for update skip locked))`,
    [chunk],
  );
  return rowCount ?? 0;
}

/** Figures that no window reaches any more. */
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

/** Secrets that sign no more, tasks that ended long ago, and workers that never came back and own nothing. */
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
  // Of endpoints that are no more, and of dead letters whose window has long been over.
  await pool.query(
    `delete from posthorn.operational_state s
      where s.at < now() - interval '2 days' and s.subject <> '' and (s.kind = 'posthorn.delivery.dead'
         or exists (select from posthorn.endpoints e where e.id = s.subject::uuid and e.deleted_at is not null))`,
  );
}
