import type { Uuid } from '../../domain/ids.ts';
import type { Queryable } from '../database.ts';

/**
 * In whole milliseconds, so that the time is exact as a JavaScript number. Not before the process's time (`$n`, seconds or null): if
 * the database's clock has just stepped back by days, the replay would expire at once.
 */
const nowOf = (parameter: string): string =>
  `greatest(date_trunc('milliseconds', now()), to_timestamp(${parameter}::float8))`;

/**
 * False if the delivery is due and was not attempted since its schedule began: a replay then makes no request of its own. Compares with the
 * present time and not with the start of this transaction: a replay that began later may have committed first.
 */
const SENDS_AGAIN = `(q.attempts > q.attempts_before_replay or coalesce(q.due_at > clock_timestamp(), false))`;

/**
 * Returns common table expressions that replay the deliveries of `chunk (id, endpoint_id)`; `moved (id, endpoint_id)` has those
 * that were replayed.
 *
 *   waiting    the row becomes due now, and its schedule starts again. It keeps its place in a FIFO lane. If it is due
 *              already and was not attempted since its schedule began, only its age starts again, and it does not count
 *              as a replay: two replays at the same time are one.
 *   dead       gets a row at the end of the queue. The dead letter stays, marked as replaying, until the replay succeeds.
 *   history    moves to the end of the queue.
 *
 * A delivery whose payload was deleted stays in the history. A dead letter that is already being replayed is treated as
 * waiting. The endpoints are locked against being disabled: a delivery that is queued after the waiting ones were skipped
 * would wait forever.
 */
export const replayMoves = (nowParameter: string): string => `
    live as materialized (
      select e.id, coalesce(e.config ->> 'ordering', 'none') = 'fifo' as fifo
        from posthorn.endpoints e
       where e.id in (select endpoint_id from chunk) and e.enabled and e.deleted_at is null
       order by e.id for share of e
    ),
    -- Locked against the deletion of the payload (queries/expire-rows.ts): without it nothing can be sent.
    with_payload as materialized (
      select ev.id from posthorn.events ev
       where ev.id = any (array(select posthorn.event_of_delivery(c.id) from chunk c join posthorn.deliveries h on h.id = c.id))
         and ev.data is not null
       order by ev.id for share of ev
    ),
    due_now as (
      update posthorn.queue q
         set due_at = case when ${SENDS_AGAIN} then ${nowOf(nowParameter)} else q.due_at end, ages_from = ${nowOf(nowParameter)},
             attempts_before_replay = q.attempts, replays = q.replays + ${SENDS_AGAIN}::int,
             trigger = case when ${SENDS_AGAIN} then 'replay' else q.trigger end,
             -- A replay leaves its batch and goes alone.
             batch_id = case when ${SENDS_AGAIN} then null else q.batch_id end
        from chunk c join live l on l.id = c.endpoint_id
       where q.id = c.id
      returning q.id, q.endpoint_id
    ),
    from_dead_letters as (
      update posthorn.dead_letters d set replaying = true, replays = d.replays + 1
        from chunk c join live l on l.id = c.endpoint_id
       where d.id = c.id and not d.replaying
      returning d.id, d.endpoint_id, l.fifo, d.attempts, d.replays, d.last_status_code, d.last_error_class, d.tenant, d.event_type
    ),
    from_history as (
      delete from posthorn.deliveries h using chunk c join live l on l.id = c.endpoint_id
       where h.id = c.id and posthorn.event_of_delivery(c.id) in (select id from with_payload)
      returning h.id, h.endpoint_id, l.fifo, h.attempts, h.replays + 1 as replays, h.last_status_code, h.last_error_class,
                h.tenant, h.event_type
    ),
    queued as (
      insert into posthorn.queue
             (id, endpoint_id, due_at, ages_from, attempts, attempts_before_replay, replays, fifo, trigger,
              last_status_code, last_error_class, tenant, event_type)
      select id, endpoint_id, ${nowOf(nowParameter)}, ${nowOf(nowParameter)}, attempts, attempts, replays, fifo, 'replay',
             last_status_code, last_error_class, tenant, event_type
        from (select * from from_dead_letters union all select * from from_history) as back
       order by id
          on conflict (id) do nothing
    ),
    moved as (
      select id, endpoint_id from due_now
      union all select id, endpoint_id from from_dead_letters
      union all select id, endpoint_id from from_history
    )`;

const REPLAY = {
  name: 'replay_deliveries',
  text: `
    with chunk as materialized (
      select id, endpoint_id from unnest($1::uuid[], $2::uuid[]) as t(id, endpoint_id)
    ),
    ${replayMoves('$3')}
    select id from moved`,
};

/**
 * Returns the ids of those that were replayed. The others belong to a disabled or deleted endpoint, do not exist, or were
 * moved at the same moment by another transaction: a new statement finds those.
 */
export async function replayDeliveries(
  client: Queryable,
  deliveries: readonly { readonly id: Uuid; readonly endpoint_id: Uuid }[],
  now: number | null = null,
): Promise<Set<Uuid>> {
  const { rows } = await client.query<{ id: Uuid }>({
    ...REPLAY,
    values: [
      `{${deliveries.map((delivery) => delivery.id).join(',')}}`,
      `{${deliveries.map((delivery) => delivery.endpoint_id).join(',')}}`,
      now === null ? null : now / 1000,
    ],
  });
  return new Set(rows.map((row) => row.id));
}
