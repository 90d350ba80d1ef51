import type { DeliveryStatus } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, type Uuid } from '../../domain/ids.ts';
import type { Trigger } from '../../domain/outcome.ts';
import type { Pool } from '../database.ts';
import { parseReceivedHeaders } from '../received-headers.ts';
import { unpackHeaders } from '../sent-headers.ts';

/** A delivery, whichever table it is in: queue, dead letters or history. */
export interface DeliveryView {
  readonly id: Uuid;
  readonly endpoint_id: Uuid;
  readonly tenant: string;
  readonly event_type: string;
  readonly status: DeliveryStatus;
  readonly reason: string | null;
  readonly attempts: number;
  readonly replays: number;
  readonly replaying: boolean;
  readonly due_at: Date | null;
  /** What holds it back while it waits, besides its due time. */
  readonly waits_for: 'circuit_open' | 'ordering' | 'rate_limited' | null;
  readonly last_status_code: number | null;
  readonly last_error_class: string | null;
  readonly finished_at: Date | null;
  /** The public id of the batch that carried it last. */
  readonly batch_id: string | null;
  /** The delivery that was sent instead of it, if it was debounced. */
  readonly debounced_by: Uuid | null;
  /** If it was discarded: why, and the reason and time of its death. */
  readonly discard: { readonly why: string | null; readonly reason: string; readonly dead_at: string } | null;
}

/**
 * The request of a batch has the id of the batch in its headers (sent-headers.ts). Only the attempts of endpoints that
 * have sent batches are read.
 */
export const batchIdOf = (row: string): string => `
    case when ${row}.attempts > 0 and exists (select from posthorn.batches b where b.endpoint_id = ${row}.endpoint_id)
         then (select a.request_headers::json ->> 'webhook-id' from posthorn.attempts a
                where a.delivery_id = ${row}.id and a.outcome <> 'superseded' order by a.id desc limit 1) end`;

/**
 * A delivery may be superseded in favour of one that is superseded itself, and so on. The last one was sent. A long flood
 * on one key makes thousands of links: a read follows this many, and returns a delivery that names the next one.
 */
const MAX_LINKS = 50;
const DEBOUNCED_BY = `
    with recursive chain as (
      select l.by_id, 1 as length from posthorn.debounced l where l.delivery_id = q.id
      union all
      select l.by_id, c.length + 1 from chain c join posthorn.debounced l on l.delivery_id = c.by_id where c.length < ${MAX_LINKS}
    )
    select by_id from chain order by length desc limit 1`;

/** The columns of `DeliveryView`, from each table that a delivery can be in. */
const COLUMNS = {
  queue: `
    select q.id, q.endpoint_id, q.tenant, q.event_type,
           case when q.attempts > q.attempts_before_replay then 'retrying' else 'pending' end as status,
           null::text as reason, q.attempts, q.replays,
           (q.replays > 0 and exists (select from posthorn.dead_letters d where d.id = q.id)) as replaying,
           q.due_at,
           case when exists (select from posthorn.endpoint_health h
                              where h.endpoint_id = q.endpoint_id and h.circuit <> 'closed') then 'circuit_open'
                when q.fifo and (exists (select from posthorn.queue f
                                          where f.endpoint_id = q.endpoint_id and f.fifo and f.seq < q.seq)
                              or exists (select from posthorn.dead_letters d
                                          where d.endpoint_id = q.endpoint_id and d.blocks_lane and not d.replaying)
                              or exists (select from posthorn.fan_out_slices s
                                          where s.has_fifo and s.seq < q.seq and q.endpoint_id = any (s.endpoint_ids)))
                then 'ordering'
                when (q.due_at is null or q.due_at <= now())
                     and exists (select from posthorn.endpoints e
                                  where e.id = q.endpoint_id and e.config ? 'rate_limit' and e.enabled and e.deleted_at is null)
                then 'rate_limited' end as waits_for,
           q.last_status_code, q.last_error_class, null::timestamptz as finished_at, null::jsonb as discard,
           ${batchIdOf('q')} as batch_id, null::uuid as debounced_by`,
  dead_letters: `
    select q.id, q.endpoint_id, q.tenant, q.event_type, 'dead' as status, q.reason, q.attempts, q.replays, false as replaying,
           null::timestamptz as due_at, null::text as waits_for, q.last_status_code, q.last_error_class, q.dead_at as finished_at,
           null::jsonb as discard, ${batchIdOf('q')} as batch_id, null::uuid as debounced_by`,
  deliveries: `
    select q.id, q.endpoint_id, q.tenant, q.event_type, q.status, q.reason, q.attempts, q.replays, false as replaying,
           null::timestamptz as due_at, null::text as waits_for, q.last_status_code, q.last_error_class, q.finished_at, q.discard,
           ${batchIdOf('q')} as batch_id,
           case when q.reason = 'debounced' then (${DEBOUNCED_BY}) end as debounced_by`,
};
export type DeliveryTable = keyof typeof COLUMNS;
export const deliveryTables = Object.keys(COLUMNS) as DeliveryTable[];

/** SQL for delivery views. `rows` is the table itself, or a query of its rows in brackets. */
export const selectViews = (table: DeliveryTable, rows: string): string => `${COLUMNS[table]} from ${rows} q`;

/** The first deliveries of an event, at most `max`: one short range of each table. Null: to all endpoints. */
export async function listDeliveriesOfEvent(
  pool: Pool,
  eventId: Uuid,
  endpointIds: readonly Uuid[] | null,
  max: number,
): Promise<DeliveryView[]> {
  const parts = deliveryTables.map(
    (table) =>
      `(${selectViews(
        table,
        `(select * from posthorn.${table} where id >= $1 and id <= $2 and ($3::uuid[] is null or endpoint_id = any ($3::uuid[]))
           order by id limit $4)`,
      )})`,
  );
  // A dead letter that is being replayed is in the queue as well, which has its current state.
  const { rows } = await pool.query<DeliveryView>(
    `select distinct on (id) * from (${parts.join(' union all ')}) as found order by id, (status = 'dead') limit $4`,
    [...deliveryRangeOfEvent(eventId), endpointIds, max],
  );
  return rows;
}

export async function findDelivery(
  pool: Pool,
  id: Uuid,
  tenant: string | null,
): Promise<DeliveryView | null> {
  const parts = deliveryTables.map(
    (table) =>
      `(${selectViews(table, `posthorn.${table}`)} where q.id = $1 and ($2::text is null or q.tenant = $2))`,
  );
  // A dead letter that is being replayed is in the queue as well, which has its current state.
  const { rows } = await pool.query<DeliveryView>(
    `select * from (${parts.join(' union all ')}) as found order by (status = 'dead') limit 1`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

export interface AttemptView {
  readonly id: Uuid;
  readonly delivery_id: Uuid;
  readonly number: number;
  readonly started_at: Date;
  readonly duration_ms: number;
  readonly dns_ms: number | null;
  readonly connect_ms: number | null;
  readonly tls_ms: number | null;
  readonly first_byte_ms: number | null;
  readonly status_code: number | null;
  readonly outcome: 'delivered' | 'retry' | 'dead' | 'superseded';
  readonly error_class: string | null;
  readonly error_message: string | null;
  readonly url: string;
  readonly request_headers: Readonly<Record<string, string>>;
  readonly response_headers: Readonly<Record<string, string>> | null;
  readonly response_body: Buffer | null;
  readonly response_truncated: boolean;
  readonly trigger: Trigger;
  readonly worker: string;
}

type StoredAttempt = Omit<AttemptView, 'request_headers' | 'response_headers'> & {
  readonly request_headers: string;
  readonly response_headers: string | null;
};

/** Oldest first. One range of one partition, for a single delivery as well as for all deliveries of an event. */
export async function listAttempts(
  pool: Pool,
  range: { first: Uuid; last: Uuid; after: { deliveryId: Uuid; attemptId: Uuid } | null; limit: number },
): Promise<AttemptView[]> {
  const { rows } = await pool.query<StoredAttempt>(
    `select * from posthorn.attempts
      where delivery_id >= $1 and delivery_id <= $2
        and ($3::uuid is null or (delivery_id, id) > ($3, $4::uuid))
      order by delivery_id, id limit $5`,
    [range.first, range.last, range.after?.deliveryId ?? null, range.after?.attemptId ?? null, range.limit],
  );
  return rows.map((row) => ({
    ...row,
    request_headers: unpackHeaders(row.request_headers, {
      deliveryId: row.delivery_id,
      number: row.number,
      startedAt: row.started_at.getTime(),
    }),
    response_headers: row.response_headers === null ? null : parseReceivedHeaders(row.response_headers),
  }));
}
