import type { Uuid } from '../../domain/ids.ts';
import type { PlacedLane } from '../../ports/ownership-store.ts';
import { inTransaction, type Pool } from '../database.ts';
import { announceChanges } from './endpoints.ts';

// The rows of the shards are locked, so that no worker takes one while its lanes move away. Shards are locked in order, as by
// the statement that records batches. Endpoints are locked before the version is taken, as in every other change.
const LOCK_MOVING = `
  select e.id from unnest($1::uuid[], $2::int[]) as l(id, placement)
    join posthorn.endpoints e on e.id = l.id and e.placement = l.placement
    join posthorn.shards s on s.shard = coalesce(e.shard, get_byte(uuid_send(e.id), 15))
   where e.shard is distinct from e.wanted_shard and e.deleted_at is null and (s.owner is null or s.owner = $3)
   order by s.shard, e.id for update of e, s`;

/** Moves lanes to their wanted shards, if the shards that they are in belong to this worker or to nobody. */
export async function moveLanes(pool: Pool, workerId: Uuid, lanes: readonly PlacedLane[]): Promise<void> {
  await inTransaction(pool, async (client) => {
    const ids = lanes.map(({ id }) => id);
    const placements = lanes.map(({ placement }) => placement);
    const { rows } = await client.query<{ id: Uuid }>(LOCK_MOVING, [ids, placements, workerId]);
    if (rows.length === 0) return;
    const moved = rows.map(({ id }) => id);
    await client.query(
      'update posthorn.endpoints set shard = wanted_shard, placement = placement + 1 where id = any ($1::uuid[])',
      [moved],
    );
    await announceChanges(client, moved);
  });
}
