import type { Uuid } from '../../domain/ids.ts';
import { type DebounceRequest, onWireSince } from '../../ports/debouncer.ts';
import type { Client } from '../database.ts';

/** Which waiting deliveries of a key end in favour of which one. */
export interface SupersedeTarget {
  readonly key: string;
  readonly by: Uuid;
  /** Another delivery that stays, besides `by`. Null: none. */
  readonly kept: Uuid | null;
  /** Only those with a lower id or acceptance number. Null: all. */
  readonly beforeId: Uuid | null;
  readonly beforeSeq: string | null;
}

/** Ascending or descending ids. */
export type IdOrder = 'asc' | 'desc';

export interface SupersedeOptions {
  /** Deliveries that must not be superseded. */
  readonly underWay: readonly Uuid[];
  /** At most this many end. */
  readonly limit: number;
  /** Which of them end first, if there are more. */
  readonly order: IdOrder;
}

/** SQL: true if a request of the delivery was started after this time. A start in the future was recorded while the clock was wrong. */
export const isStartedSince = (parameter: string): string =>
  `coalesce(q.started_at > to_timestamp(${parameter}::float8)
             and (${parameter}::float8 = 0 or q.started_at < to_timestamp(${parameter}::float8 + 86400)), false)`;

/**
 * The waiting deliveries of the key `t.key`, in the order of their ids. After an event was matched again, a key row may remain
 * for a delivery id that now belongs to another endpoint. "offset 0" keeps the order of the joins: a plan that was made while
 * the queue was empty would otherwise scan all of it.
 */
export const waitingOfKey = (order: IdOrder): string => `
  select q.*, k.chosen, k.since
    from (select * from posthorn.debounce_keys where endpoint_id = $1 and key = t.key order by delivery_id ${order} offset 0) k
   cross join lateral (select * from posthorn.queue where id = k.delivery_id and endpoint_id = $1 offset 0) q`;

// Whether a request was started is checked again when the row is deleted: another statement may have recorded a start while
// this one waited for the row.
// A delivery that was chosen is sent whatever comes after it, until its first attempt has ended. The counts come from the
// rows that are deleted, not from a snapshot: another decision may have changed them a moment ago. There may be thousands of
// rows, and the session joins by nested loops, so only the few targets are joined. What was skipped in favour of a
// delivery that ends now keeps its link to it: a reader follows the links.
const supersedeQuery = (order: IdOrder) => ({
  name: `supersede_debounced_${order}`,
  text: `
    with targets as materialized (
      select * from json_to_recordset($2::json) as t(key text, by_id uuid, kept uuid, before_id uuid, before_seq bigint)
    ),
    superseded as materialized (
      select q.id
        from targets t cross join lateral (${waitingOfKey(order)}) q
       where q.replays = 0
         and (t.before_id is null or q.id < t.before_id) and (t.before_seq is null or q.seq < t.before_seq)
         and q.id <> t.by_id and q.id is distinct from t.kept and not (q.chosen and q.attempts = 0)
         and q.id <> all ($3::uuid[])
         and (q.id = any ($4::uuid[])
              or not ${isStartedSince('$5')})
       limit $6
    ),
    removed as (
      delete from posthorn.queue q where q.id = any (array(select id from superseded))
         and (q.id = any ($4::uuid[]) or not ${isStartedSince('$5')})
      returning q.id, q.endpoint_id, q.attempts, q.replays, q.last_status_code, q.last_error_class, q.tenant, q.event_type,
                (select t.by_id from posthorn.debounce_keys k join targets t on t.key = k.key where k.delivery_id = q.id) as by_id
    ),
    ended as (
      insert into posthorn.deliveries
             (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant, event_type)
      select id, endpoint_id, 'skipped', 'debounced', attempts, replays, last_status_code, last_error_class, now(), tenant, event_type
        from removed
    ),
    linked as (
      insert into posthorn.debounced (delivery_id, endpoint_id, by_id) select id, endpoint_id, by_id from removed
          on conflict (delivery_id) do update set by_id = excluded.by_id
    ),
    forgotten as (
      delete from posthorn.debounce_keys k where k.delivery_id = any (array(select id from removed))
      returning (select t.by_id from targets t where t.key = k.key) as by_id, k.since, k.debounced
    ),
    counted as (
      update posthorn.debounce_keys k
         set debounced = k.debounced + d.count, since = least(k.since, d.since)
        from (select by_id, sum(debounced + 1)::int as count, min(since) as since from forgotten group by by_id) d
       where k.delivery_id = d.by_id and k.delivery_id = any (array(select by_id from targets))
    )
    select id from removed`,
});
const SUPERSEDE = { asc: supersedeQuery('asc'), desc: supersedeQuery('desc') };

/** Ends waiting deliveries as skipped, in favour of others. Those that are or may be on the wire stay. Returns what ended. */
export async function supersede(
  client: Client,
  { endpointId, asked, now, onWireMs }: DebounceRequest,
  targets: readonly SupersedeTarget[],
  { underWay, limit, order }: SupersedeOptions,
): Promise<Uuid[]> {
  if (targets.length === 0 || limit <= 0) return [];
  const { rows } = await client.query<{ id: Uuid }>({
    ...SUPERSEDE[order],
    values: [
      endpointId,
      JSON.stringify(targets.map(toRow)),
      underWay,
      asked.map(({ id }) => id),
      onWireSince({ now, onWireMs }) / 1000,
      limit,
    ],
  });
  return rows.map(({ id }) => id);
}

const toRow = ({ key, by, kept, beforeId, beforeSeq }: SupersedeTarget) => ({
  key,
  by_id: by,
  kept,
  before_id: beforeId,
  before_seq: beforeSeq,
});
