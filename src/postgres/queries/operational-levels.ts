/**
 * What is measured to tell when too much lies or waits too long. Deliveries of operational events are left out of both,
 * or an endpoint that does not take them would be the cause of more of them.
 */
import { timeOfId, type Uuid } from '../../domain/ids.ts';
import type { Client } from '../database.ts';

/** Up to `most`: beyond the threshold the exact figure decides nothing. */
export async function deadLettersUpTo(client: Client, most: number): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int from (
       select from posthorn.dead_letters where event_type not like 'posthorn.%' limit $1) few`,
    [most],
  );
  return rows[0]!.count;
}

export interface OldestWaiting {
  readonly deliveryId: Uuid;
  readonly endpointId: Uuid;
  readonly tenant: string;
  /** Since when it could have been sent. */
  readonly since: number;
}

// Of endpoints that are being sent to: one that is paused, or whose circuit is open, has its own event. Two looks into
// short ranges of an index for each; by one process, and only if somebody wants to know. A FIFO endpoint's first one
// decides for all behind it: if that waits for its next attempt, nothing is late.
const OLDEST = `
  select e.id as endpoint_id, e.tenant, first.id, first.since
    from posthorn.endpoints e
    left join posthorn.endpoint_health h on h.endpoint_id = e.id
   cross join lateral (
         (select q.id, extract(epoch from q.ages_from)::float8 * 1000 as since, q.due_at
            from posthorn.queue q
           where q.endpoint_id = e.id and (q.due_at is null or q.fifo) and q.event_type not like 'posthorn.%'
           order by q.seq limit 1)
         union all
         (select q.id, extract(epoch from q.due_at)::float8 * 1000, q.due_at
            from posthorn.queue q
           where q.endpoint_id = e.id and q.due_at is not null and not q.fifo and q.event_type not like 'posthorn.%'
           order by q.due_at limit 1)) first
   where e.enabled and not e.paused and e.deleted_at is null and coalesce(h.circuit, 'closed') = 'closed'
     and (first.due_at is null or first.due_at <= now())
   order by coalesce(first.since, (('x' || translate(left(first.id::text, 13), '-', ''))::bit(48)::bigint)::float8)
   limit 1`;

export async function oldestWaiting(client: Client): Promise<OldestWaiting | null> {
  const { rows } = await client.query<{
    endpoint_id: Uuid;
    tenant: string;
    id: Uuid;
    since: number | null;
  }>(OLDEST);
  const row = rows[0];
  if (row === undefined) return null;
  return {
    deliveryId: row.id,
    endpointId: row.endpoint_id,
    tenant: row.tenant,
    since: row.since ?? timeOfId(row.id),
  };
}
