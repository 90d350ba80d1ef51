/**
 * Measures dead letters and the oldest waiting delivery, and reads the state of the archive. Deliveries of operational
 * events do not count: an endpoint that rejects them would cause more of them.
 */
import { timeOfId, type Uuid } from '../../domain/ids.ts';
import type { ArchiveFailure, OldestWaiting } from '../../ports/operational-store.ts';
import type { Client } from '../database.ts';

export async function countDeadLettersUpTo(client: Client, max: number): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int from (
       select from posthorn.dead_letters where event_type not like 'posthorn.%' limit $1) few`,
    [max],
  );
  return rows[0]!.count;
}

// Only endpoints that are sent to: a paused endpoint, or one with an open circuit, has an event of its own. Reads two
// short index ranges per endpoint; one process does this, and only if an endpoint subscribes to the event. The head of
// a FIFO lane decides for the lane: if the head waits for its next attempt, nothing is late.
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

export async function findOldestWaiting(client: Client): Promise<OldestWaiting | null> {
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

export async function readArchiveFailure(client: Client): Promise<ArchiveFailure | null> {
  const { rows } = await client.query<ArchiveFailure>(
    `select extract(epoch from failed_at)::float8 * 1000 as since, partition, error from posthorn.archive_state
      where failed_at is not null and error is not null`,
  );
  return rows[0] ?? null;
}
