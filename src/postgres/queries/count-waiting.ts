import { timeOfId, type Uuid } from '../../domain/ids.ts';
import type { WaitingCount } from '../../ports/delivery-queue.ts';
import type { Pool } from '../database.ts';

// Two short ranges of the indexes that lanes are loaded from. Counts up to a limit: with a backlog of a million it
// matters whether it grows, not how large it is exactly.
const COUNT_WAITING = {
  name: 'count_waiting',
  text: `
    select wanted.endpoint_id, fresh.count as fresh, retries.count as retries, first.id as first_id,
           extract(epoch from first.ages_from)::float8 * 1000 as first_ages_from,
           extract(epoch from retries.first_due)::float8 * 1000 as first_due
      from unnest($1::uuid[]) as wanted(endpoint_id)
     cross join lateral (
           select count(*)::int from (
             select from posthorn.queue where endpoint_id = wanted.endpoint_id and (due_at is null or fifo) limit $2) q) fresh
     cross join lateral (
           select count(*)::int, min(due_at) as first_due from (
             select due_at from posthorn.queue where endpoint_id = wanted.endpoint_id and due_at is not null and not fifo
              order by due_at limit $2) q) retries
      left join lateral (
           select id, ages_from from posthorn.queue where endpoint_id = wanted.endpoint_id and (due_at is null or fifo)
            order by seq limit 1) first on true`,
};

/** Counts waiting deliveries per endpoint, each kind up to `max`. */
export async function countWaiting(
  pool: Pool,
  endpointIds: readonly Uuid[],
  max: number,
): Promise<WaitingCount[]> {
  const { rows } = await pool.query<{
    endpoint_id: Uuid;
    fresh: number;
    retries: number;
    first_id: Uuid | null;
    first_ages_from: number | null;
    first_due: number | null;
  }>({ ...COUNT_WAITING, values: [`{${endpointIds.join(',')}}`, max] });
  return rows.map((row) => ({
    endpointId: row.endpoint_id,
    fresh: row.fresh,
    retries: row.retries,
    oldestFresh:
      row.first_id === null ? Number.POSITIVE_INFINITY : (row.first_ages_from ?? timeOfId(row.first_id)),
    firstDue: row.first_due ?? Number.POSITIVE_INFINITY,
  }));
}
