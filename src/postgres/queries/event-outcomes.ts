import type { DeliveryStatus } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, type Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';

/** How many deliveries of an event have each status. */
export type EventOutcome = Readonly<Record<DeliveryStatus, number>>;

/**
 * How many deliveries are counted at most: of one event in a list, of all events of a page, and of an event that is
 * shown alone.
 */
export const MAX_COUNTED_PER_EVENT = 1_000;
export const MAX_COUNTED_PER_PAGE = 20_000;
export const MAX_COUNTED_ALONE = 100_000;

/**
 * The deliveries of an event are one range of ids in each table. One statement sees one state: a delivery that moves from
 * one table to another is counted once. A dead letter that is being replayed is counted in the queue.
 */
const OUTCOMES = `
  select e.id, c.*
    from unnest($1::uuid[], $2::uuid[]) as e(id, last)
   cross join lateral (
     select count(*)::int as counted,
            count(*) filter (where status = 'pending')::int as pending,
            count(*) filter (where status = 'retrying')::int as retrying,
            count(*) filter (where status = 'delivered')::int as delivered,
            count(*) filter (where status = 'dead')::int as dead,
            count(*) filter (where status = 'discarded')::int as discarded,
            count(*) filter (where status = 'skipped')::int as skipped
       from ((select case when q.attempts > q.attempts_before_replay then 'retrying' else 'pending' end as status
                from posthorn.queue q
               where q.id >= e.id and q.id <= e.last limit $3)
             union all
             (select 'dead' from posthorn.dead_letters q
               where q.id >= e.id and q.id <= e.last and not q.replaying limit $3)
             union all
             (select q.status from posthorn.deliveries q
               where q.id >= e.id and q.id <= e.last limit $3)) s
   ) c`;

/**
 * Counts the deliveries of events by status. An event with more than `max` deliveries is missing in the result: its counts
 * would be too low.
 */
export async function countOutcomes(
  pool: Pool,
  eventIds: readonly Uuid[],
  max: number,
): Promise<Map<Uuid, EventOutcome>> {
  if (eventIds.length === 0) return new Map();
  const { rows } = await pool.query<EventOutcome & { id: Uuid; counted: number }>({
    name: 'count_outcomes',
    text: OUTCOMES,
    values: [
      `{${eventIds.join(',')}}`,
      `{${eventIds.map((id) => deliveryRangeOfEvent(id)[1]).join(',')}}`,
      max + 1,
    ],
  });
  return new Map(
    rows.filter(({ counted }) => counted <= max).map(({ id, counted: _, ...outcome }) => [id, outcome]),
  );
}
