import type { Uuid } from '../../domain/ids.ts';
import type { Settlement } from '../../ports/delivery-queue.ts';
import type { Pool } from '../database.ts';
import { toRows } from './settlement-rows.ts';
import { journalOf } from './stats-journal.ts';

// The usual batch: only deliveries that succeeded at their first attempt. A third of the processor time of SETTLE, most
// of which is spent on preparing its many parts for each commit. A delivery that was replayed is left to SETTLE.
const SETTLE_FIRST_ATTEMPTS = {
  name: 'settle_first_attempts',
  text: `
    with incoming as materialized (
      select * from json_to_recordset($1::json) as t(
        delivery_id uuid, attempt_id uuid, started_at float8, duration_ms int, dns_ms int, connect_ms int, tls_ms int,
        first_byte_ms int, status_code smallint, url text, request_headers text, response_headers text, body_start int,
        body_length int, truncated boolean)
    ),
    removed as (
      delete from posthorn.queue q using incoming i
       where q.id = i.delivery_id and q.attempts = 0 and q.replays = 0
         and q.id = any (array(select delivery_id from incoming))
      returning q.endpoint_id, q.tenant, q.event_type, i.*
    ),
    delivered as (
      insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, last_status_code, finished_at, tenant, event_type)
      select delivery_id, endpoint_id, 'delivered', 1, 0, status_code, to_timestamp(started_at + duration_ms / 1000.0),
             tenant, event_type
        from removed
    ),
    logged as (
      insert into posthorn.attempts
             (delivery_id, id, number, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, status_code, outcome,
              url, request_headers, response_headers, response_body, response_truncated, trigger, worker)
      select delivery_id, attempt_id, 1, to_timestamp(started_at), duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
             status_code, 'delivered', url, request_headers, response_headers,
             substring($2::bytea from body_start for body_length), coalesce(truncated, false), 'auto', $3
        from removed
    ),
    counted as (
      insert into posthorn.stats_journal (counts) select $4::text where $4 is not null and (select count(*) from removed) = $5
    )
    select delivery_id as id from removed`,
};

/** True for a success at the first attempt of a delivery that was never replayed. */
export const isFirstSuccess = ({ verdict, attempt, attemptsBefore }: Settlement): boolean =>
  verdict.kind === 'delivered' && attemptsBefore === 0 && attempt?.trigger === 'auto';

/** Records successes at the first attempt. Returns the deliveries that moved, and counts them if all did. */
export async function settleFirstAttempts(
  pool: Pool,
  settlements: readonly Settlement[],
  workerName: string,
): Promise<Set<Uuid>> {
  const { rows, bodies } = toRows(settlements);
  const { rows: moved } = await pool.query<{ id: Uuid }>({
    ...SETTLE_FIRST_ATTEMPTS,
    values: [JSON.stringify(rows), bodies, workerName, journalOf(settlements), settlements.length],
  });
  return new Set(moved.map((row) => row.id));
}
