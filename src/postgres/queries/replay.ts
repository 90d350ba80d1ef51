import type { Uuid } from '../../domain/ids.ts';
import type { Queryable } from '../database.ts';

/** Replays become due on a whole millisecond, which survives the way through JavaScript's numbers exactly. */
const NOW = "date_trunc('milliseconds', now())";

/**
 * Brings the deliveries of `chunk (id, endpoint_id)` back, wherever they are; `moved (id, endpoint_id)` tells which.
 *
 *   waiting    the same row becomes due now, and its schedule starts again. It keeps its place in a FIFO lane: it
 *              was its turn anyway. One that was never tried is due already.
 *   dead       gets a row in the queue, at its tail; the dead letter stays, marked, until the replay has succeeded
 *   history    moves back into the queue, at its tail
 *
 * The endpoints are locked against being switched off meanwhile: what comes back after the waiting ones have been
 * skipped would wait for ever. A dead letter that is being replayed is in the queue, and moved there.
 */
export const REPLAY_MOVES = `
    live as materialized (
      select e.id, coalesce(e.config ->> 'ordering', 'none') = 'fifo' as fifo
        from posthorn.endpoints e
       where e.id in (select endpoint_id from chunk) and e.enabled and e.deleted_at is null
       order by e.id for share of e
    ),
    due_now as (
      update posthorn.queue q
         set due_at = case when q.due_at is null then null else ${NOW} end, ages_from = ${NOW},
             attempts_before_replay = q.attempts, replays = q.replays + 1,
             trigger = case when q.due_at is null then q.trigger else 'replay' end
        from chunk c join live l on l.id = c.endpoint_id
       where q.id = c.id
      returning q.id, q.endpoint_id
    ),
    revived as (
      update posthorn.dead_letters d set replaying = true, replays = d.replays + 1
        from chunk c join live l on l.id = c.endpoint_id
       where d.id = c.id and not d.replaying
      returning d.id, d.endpoint_id, l.fifo, d.attempts, d.replays, d.last_status_code, d.last_error_class, d.tenant, d.event_type
    ),
    taken_back as (
      delete from posthorn.deliveries h using chunk c join live l on l.id = c.endpoint_id
       where h.id = c.id
      returning h.id, h.endpoint_id, l.fifo, h.attempts, h.replays + 1 as replays, h.last_status_code, h.last_error_class,
                h.tenant, h.event_type
    ),
    queued as (
      insert into posthorn.queue
             (id, endpoint_id, due_at, ages_from, attempts, attempts_before_replay, replays, fifo, trigger,
              last_status_code, last_error_class, tenant, event_type)
      select id, endpoint_id, ${NOW}, ${NOW}, attempts, attempts, replays, fifo, 'replay',
             last_status_code, last_error_class, tenant, event_type
        from (select * from revived union all select * from taken_back) as back
       order by id
          on conflict (id) do nothing
    ),
    moved as (
      select id, endpoint_id from due_now
      union all select id, endpoint_id from revived
      union all select id, endpoint_id from taken_back
    )`;

const REPLAY = {
  name: 'replay_deliveries',
  text: `
    with chunk as materialized (
      select id, endpoint_id from unnest($1::uuid[], $2::uuid[]) as t(id, endpoint_id)
    ),
    ${REPLAY_MOVES}
    select id from moved`,
};

/**
 * Returns those that were brought back. The others belong to an endpoint that is off, do not exist, or have just been
 * moved by somebody else: a new statement finds them where they are now.
 */
export async function replayDeliveries(
  client: Queryable,
  deliveries: readonly { readonly id: Uuid; readonly endpoint_id: Uuid }[],
): Promise<Set<Uuid>> {
  const { rows } = await client.query<{ id: Uuid }>({
    ...REPLAY,
    values: [
      `{${deliveries.map((delivery) => delivery.id).join(',')}}`,
      `{${deliveries.map((delivery) => delivery.endpoint_id).join(',')}}`,
    ],
  });
  return new Set(rows.map((row) => row.id));
}
