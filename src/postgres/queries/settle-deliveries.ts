import type { Uuid } from '../../domain/ids.ts';
import type { EndpointNote } from '../../domain/operational.ts';
import type { HealthChange, Settlement } from '../../ports/delivery-queue.ts';
import type { Queryable } from '../database.ts';
import { noteCircuits, noteDeaths } from './operational-notes.ts';
import { ownerOfLane } from './ownership.ts';
import { isFirstSuccess, settleFirstAttempts } from './settle-first-attempts.ts';
import { type SettlementRow, toRows } from './settlement-rows.ts';
import { journalDeaths, journalOf } from './stats-journal.ts';

// One statement, one commit. `removed` and `retried` are a compare-and-set on the number of attempts: a worker that
// lost its shard cannot overwrite a newer state. A failure is ignored too if the delivery was replayed while the request
// was on the wire: the schedule has started again, and this attempt is not part of it. Both return the incoming columns,
// so that no second join is needed. Data from receivers is bytea (cut from one blob) or made storable before. The same
// commit counts statistics, in one row; if a part of the batch was not moved, the next statement counts.
// Plans are made while the queue is empty and must be good when a million deliveries wait. The planner would scan the
// whole queue; "= any" forces it to look up the batch, and the session joins by hashing, so that the batch is not
// compared with itself row by row.
const IS_OF_NEXT_OWNER =
  'q.started_at between to_timestamp(i.started_at + 2) and to_timestamp(i.started_at + 86400)';
/** SQL: the later hold. Ignores a stored hold that was written while a clock was wrong: it would override all later ones. */
const LATEST_HOLD = `
  case when h.hold_until > (select to_timestamp(c.hold_limit) from changes c where c.endpoint_id = h.endpoint_id)
       then excluded.hold_until else greatest(h.hold_until, excluded.hold_until) end`;
const SETTLE = {
  name: 'settle',
  text: `
    with incoming as materialized (
      select * from json_to_recordset($1::json) as t(
        delivery_id uuid, before int, verdict text, due_at float8, reason text, blocks boolean, attempt_id uuid,
        started_at float8, duration_ms int, dns_ms int, connect_ms int, tls_ms int, first_byte_ms int,
        status_code smallint, error_class text, error_message text, url text, request_headers text,
        response_headers text, body_start int, body_length int, truncated boolean, trigger text, fifo boolean, ages_from float8,
        batch_id uuid, uncounted boolean)
    ),
    removed as (
      delete from posthorn.queue q using incoming i
       where i.verdict <> 'retry' and q.id = i.delivery_id and q.attempts = i.before
         and q.id = any (array(select delivery_id from incoming where verdict <> 'retry'))
         and (i.attempt_id is null or i.trigger = 'replay' or q.trigger <> 'replay' or i.verdict = 'delivered')
         and (i.attempt_id is not null or q.ages_from is null or q.ages_from < to_timestamp(i.ages_from + 0.001))
      returning q.endpoint_id, q.tenant, q.event_type, q.replays, i.*
    ),
    retried as (
      update posthorn.queue q
         set attempts = q.attempts + 1, due_at = to_timestamp(i.due_at), careful_starts = 0,
             -- A start well after this attempt belongs to the next owner, whose request is still on the wire. If that request
             -- is a requested probe, it stays one: otherwise yet another owner would start a second probe beside it. If the
             -- start is more than a day after this attempt, the clock was wrong when it was recorded.
             started_at = case when ${IS_OF_NEXT_OWNER} then q.started_at end,
             probe_after_attempts = q.probe_after_attempts
               + (q.probe_after_attempts = q.attempts and coalesce(${IS_OF_NEXT_OWNER}, false))::int,
             fifo = q.fifo or coalesce(i.fifo, false),
             last_status_code = i.status_code, last_error_class = i.error_class, trigger = 'auto', batch_id = i.batch_id,
             attempts_before_replay = q.attempts_before_replay + coalesce(i.uncounted, false)::int
        from incoming i
       where i.verdict = 'retry' and q.id = i.delivery_id and q.attempts = i.before
         and q.id = any (array(select delivery_id from incoming where verdict = 'retry'))
         and (i.trigger = 'replay' or q.trigger <> 'replay')
      returning i.*
    ),
    delivered as (
      insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, last_status_code, finished_at, tenant, event_type)
      select delivery_id, endpoint_id, 'delivered', before + 1, replays, status_code,
             to_timestamp(started_at + duration_ms / 1000.0), tenant, event_type
        from removed where verdict = 'delivered'
    ),
    deleted_dead_letters as (
      delete from posthorn.dead_letters
       where id = any (array(select delivery_id from removed where replays > 0 and verdict = 'delivered'))
    ),
    added_dead_letters as (
      insert into posthorn.dead_letters as d
             (id, endpoint_id, reason, attempts, replays, blocks_lane, last_status_code, last_error_class, dead_at, tenant, event_type)
      select delivery_id, endpoint_id, reason, before + (attempt_id is not null)::int, replays, coalesce(blocks, false),
             status_code, error_class, now(), tenant, event_type
        from removed where verdict = 'dead'
          on conflict (id) do update
         set reason = excluded.reason, attempts = excluded.attempts, replays = excluded.replays, replaying = false,
             blocks_lane = excluded.blocks_lane, dead_at = excluded.dead_at,
             last_status_code = coalesce(excluded.last_status_code, d.last_status_code),
             last_error_class = coalesce(excluded.last_error_class, d.last_error_class)
    ),
    logged as (
      insert into posthorn.attempts
             (delivery_id, id, number, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, status_code, outcome,
              error_class, error_message, url, request_headers, response_headers, response_body, response_truncated, trigger, worker)
      select delivery_id, attempt_id, before + 1, to_timestamp(started_at), duration_ms, dns_ms, connect_ms, tls_ms,
             first_byte_ms, status_code, verdict, error_class, error_message, url, request_headers, response_headers,
             substring($2::bytea from body_start for body_length), coalesce(truncated, false), trigger, $3
        from (select delivery_id, attempt_id, before, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
                     status_code, verdict, error_class, error_message, url, request_headers, response_headers,
                     body_start, body_length, truncated, trigger
                from removed where attempt_id is not null
              union all
              select delivery_id, attempt_id, before, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
                     status_code, verdict, error_class, error_message, url, request_headers, response_headers,
                     body_start, body_length, truncated, trigger
                from retried) as moved
          on conflict (delivery_id, id) do nothing
    ),
    changes as materialized (
      select * from json_to_recordset($4::json) as t(
               endpoint_id uuid, circuit text, consecutive_failures int, opened_at float8,
               cooldown_ms bigint, next_probe_at float8, failing_since float8, hold_until float8, hold_limit float8, adaptive jsonb)
       where ${ownerOfLane('t.endpoint_id')} = $5
    ),
    health as (
      insert into posthorn.endpoint_health as h
             (endpoint_id, circuit, consecutive_failures, opened_at, cooldown_ms, next_probe_at, failing_since, hold_until,
              adaptive)
      select endpoint_id, circuit, consecutive_failures, to_timestamp(opened_at), cooldown_ms, to_timestamp(next_probe_at),
             to_timestamp(failing_since), to_timestamp(hold_until), adaptive
        from changes where circuit is not null
          on conflict (endpoint_id) do update
         set circuit = excluded.circuit, consecutive_failures = excluded.consecutive_failures,
             opened_at = excluded.opened_at, cooldown_ms = excluded.cooldown_ms, next_probe_at = excluded.next_probe_at,
             failing_since = excluded.failing_since, hold_until = ${LATEST_HOLD},
             adaptive = excluded.adaptive, updated_at = now()
    ),
    holds as (
      insert into posthorn.endpoint_health as h (endpoint_id, circuit, consecutive_failures, cooldown_ms, hold_until)
      select endpoint_id, 'closed', 0, 0, to_timestamp(hold_until) from changes where circuit is null
          on conflict (endpoint_id) do update set hold_until = ${LATEST_HOLD}
    ),
    counted as (
      insert into posthorn.stats_journal (counts)
      select $6::text where $6 is not null and (select count(*) from removed) + (select count(*) from retried) = $7
    ),
    counted_deaths as (${journalDeaths('removed where attempt_id is null')}
    ),
    noted_deaths as (${noteDeaths(
      "(select *, before + (attempt_id is not null)::int as attempts from removed where verdict = 'dead') as died",
    )}
    ),
    noted_circuits as (${noteCircuits('$8', '$5')}
    )
    select delivery_id as id from removed union all select delivery_id from retried`,
};

// Logs attempts whose delivery another worker has settled meanwhile, and counts the rest of the batch. If the process
// dies between the two statements, this batch is missing from the statistics.
const SUPERSEDED = {
  name: 'settle_superseded',
  text: `
    with counted as (
      insert into posthorn.stats_journal (counts) select $3::text where $3 is not null
    )
    insert into posthorn.attempts
           (delivery_id, id, number, started_at, duration_ms, status_code, outcome, error_class, url, request_headers,
            response_truncated, trigger, worker)
    select delivery_id, attempt_id, before + 1, to_timestamp(started_at), duration_ms, status_code, 'superseded',
           error_class, url, request_headers, false, trigger, $2
      from json_to_recordset($1::json) as t(
             delivery_id uuid, attempt_id uuid, before int, started_at float8, duration_ms int, status_code smallint,
             error_class text, url text, request_headers text, trigger text)
     where attempt_id is not null
       -- No attempt is logged for an event that was expunged meanwhile.
       and exists (select from posthorn.events e where e.id = posthorn.event_of_delivery(t.delivery_id) and e.data is not null)
        on conflict (delivery_id, id) do nothing`,
};

/** Records a batch of results. Returns the deliveries that moved; others were settled by another worker, or replayed. */
export async function settleDeliveries(
  client: Queryable,
  settlements: readonly Settlement[],
  health: readonly HealthChange[],
  worker: { id: Uuid; name: string },
  notes: readonly EndpointNote[] = [],
): Promise<Set<Uuid>> {
  const isUsual = health.length === 0 && notes.length === 0 && settlements.every(isFirstSuccess);
  if (!isUsual) return settleAny(client, settlements, health, worker, notes);
  const won = await settleFirstAttempts(client, settlements, worker.name);
  const rest = settlements.filter(({ deliveryId }) => !won.has(deliveryId));
  if (rest.length === 0) return won;
  await logSuperseded(client, [], worker.name, settlements, won);
  return new Set([...won, ...(await settleAny(client, rest, health, worker, notes))]);
}

async function settleAny(
  client: Queryable,
  settlements: readonly Settlement[],
  health: readonly HealthChange[],
  worker: { id: Uuid; name: string },
  notes: readonly EndpointNote[],
): Promise<Set<Uuid>> {
  const { rows, bodies } = toRows(settlements);
  const { rows: moved } = await client.query<{ id: Uuid }>({
    ...SETTLE,
    values: [
      JSON.stringify(rows),
      bodies,
      worker.name,
      JSON.stringify(health.map(toHealthRow)),
      worker.id,
      journalOf(settlements),
      settlements.length,
      notes.length === 0 ? null : JSON.stringify(notes.map(toNoteRow)),
    ],
  });
  const won = new Set(moved.map((row) => row.id));
  const lost = rows.filter((row) => !won.has(row.delivery_id));
  if (lost.length > 0) await logSuperseded(client, lost, worker.name, settlements, won);
  return won;
}

/** Logs the attempts that moved no delivery, and counts those that did, because the statement that moved them did not. */
async function logSuperseded(
  client: Queryable,
  lost: readonly SettlementRow[],
  workerName: string,
  settlements: readonly Settlement[],
  won: ReadonlySet<Uuid>,
): Promise<void> {
  const counted = journalOf(settlements.filter(({ deliveryId }) => won.has(deliveryId)));
  await client.query({ ...SUPERSEDED, values: [JSON.stringify(lost), workerName, counted] });
}

function toHealthRow({ endpointId, breaker, failingSince, holdUntil = null, ...rest }: HealthChange) {
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1000);
  return {
    endpoint_id: endpointId,
    // No circuit: only the hold changes.
    ...(breaker !== null && {
      circuit: breaker.circuit,
      consecutive_failures: breaker.consecutiveFailures,
      opened_at: seconds(breaker.openedAt),
      cooldown_ms: breaker.cooldownMs,
      next_probe_at: seconds(breaker.nextProbeAt),
    }),
    failing_since: seconds(failingSince),
    hold_until: seconds(holdUntil),
    hold_limit: seconds(rest.latestHold ?? null),
    adaptive: rest.adaptive ?? null,
  };
}

const toNoteRow = ({ id, kind, endpointId, detail }: EndpointNote) => ({
  id,
  kind,
  endpoint_id: endpointId,
  detail,
});
