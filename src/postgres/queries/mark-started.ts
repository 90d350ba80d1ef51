import type { Uuid } from '../../domain/ids.ts';
import type { Start } from '../../ports/delivery-queue.ts';
import type { Queryable } from '../database.ts';

// Only for the owner of the shard, and only if the delivery has not changed.
const MARK = {
  name: 'mark_started',
  text: `
    with incoming as materialized (
      select * from json_to_recordset($1::json) as t(
        delivery_id uuid, attempts int, careful boolean, shard smallint, endpoint_id uuid, next_probe_at float8, at float8)
    ),
    marked as (
      update posthorn.queue q
         set started_at = greatest(clock_timestamp(), to_timestamp(i.at)), careful_starts = q.careful_starts + i.careful::int
        from incoming i join posthorn.shards s on s.shard = i.shard and s.owner = $2
       where q.id = i.delivery_id and q.attempts = i.attempts
         -- Forces an index lookup: a plan made while the queue was empty would scan all of it.
         and q.id = any (array(select delivery_id from incoming))
      returning q.id, i.endpoint_id, i.next_probe_at
    ),
    probing as (
      update posthorn.endpoint_health h set circuit = 'half_open', next_probe_at = to_timestamp(m.next_probe_at), updated_at = now()
        from marked m where h.endpoint_id = m.endpoint_id and h.circuit <> 'closed'
         and h.endpoint_id = any (array(select endpoint_id from incoming))
    )
    select id from marked`,
};

/** Records starts. Returns the deliveries that may be sent. */
export async function markStarted(
  client: Queryable,
  starts: readonly Start[],
  workerId: Uuid,
): Promise<Set<Uuid>> {
  const rows = starts.map((start) => ({
    delivery_id: start.deliveryId,
    attempts: start.attempts,
    careful: start.careful,
    shard: start.shard,
    at: start.at === undefined ? null : start.at / 1000,
    endpoint_id: start.probe?.endpointId,
    next_probe_at: start.probe && (start.probe.breaker.nextProbeAt ?? 0) / 1000,
  }));
  const { rows: marked } = await client.query<{ id: Uuid }>({
    ...MARK,
    values: [JSON.stringify(rows), workerId],
  });
  return new Set(marked.map((row) => row.id));
}
