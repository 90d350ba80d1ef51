import { firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { noteDeaths } from './operational-notes.ts';
import { journalDeaths, journalSkipped } from './stats-journal.ts';

/** Deliveries per statement: an endpoint may have a million of them. */
const CHUNK = 2000;

// Checks that the endpoint is still disabled or deleted: the worker may have been suspended before it runs this, and
// deliveries that were accepted after the endpoint was enabled again must be sent. Requests on the wire are excluded:
// their responses decide.
const SKIP = {
  name: 'skip_waiting',
  text: `
    with unavailable as materialized (
      select from posthorn.endpoints where id = $1 and (not enabled or deleted_at is not null) for share
    ),
    chosen as materialized (
      select id from posthorn.queue
       where endpoint_id = $1 and id <> all ($3::uuid[]) and exists (select from unavailable) limit $4 for update skip locked
    ),
    removed as (
      delete from posthorn.queue q using chosen c where q.id = c.id
      returning q.id, q.endpoint_id, q.attempts, q.replays, q.last_status_code, q.last_error_class, q.tenant, q.event_type
    ),
    skipped as (
      insert into posthorn.deliveries
             (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant, event_type)
      select id, endpoint_id, 'skipped', $2, attempts, replays, last_status_code, last_error_class, now(), tenant, event_type
        from removed r where not exists (select from posthorn.dead_letters d where d.id = r.id)
      returning endpoint_id, reason
    ),
    counted as (${journalSkipped("(select endpoint_id from skipped where reason = 'endpoint_disabled') as disabled")}
    ),
    -- The replay of a dead letter ends: it is an ordinary dead letter again.
    still_dead as (
      update posthorn.dead_letters d set replaying = false, attempts = r.attempts from removed r where d.id = r.id
    )
    select count(*)::int as ended from removed`,
};

export async function skipWaiting(
  pool: Pool,
  endpointId: Uuid,
  reason: 'endpoint_disabled' | 'endpoint_deleted',
  except: readonly Uuid[],
): Promise<number> {
  const { rows } = await pool.query<{ ended: number }>({
    ...SKIP,
    values: [endpointId, reason, `{${except.join(',')}}`, CHUNK],
  });
  return rows[0]!.ended;
}

// The id contains the time of acceptance: the index on (endpoint_id, id) finds the old deliveries.
const EXPIRE = {
  name: 'expire_waiting',
  text: `
    with chosen as materialized (
      select id from posthorn.queue
       where endpoint_id = $1 and id < $2 and (ages_from is null or ages_from < to_timestamp($3)) and id <> all ($4::uuid[])
       limit $5 for update skip locked
    ),
    removed as (
      delete from posthorn.queue q using chosen c where q.id = c.id
      returning q.id, q.endpoint_id, q.attempts, q.replays, q.last_status_code, q.last_error_class, q.tenant, q.event_type
    ),
    dead_letters_added as (
      insert into posthorn.dead_letters
             (id, endpoint_id, reason, attempts, replays, blocks_lane, last_status_code, last_error_class, dead_at, tenant, event_type)
      select id, endpoint_id, 'expired', attempts, replays, $6, last_status_code, last_error_class, now(), tenant, event_type from removed
          on conflict (id) do update set reason = 'expired', replaying = false, attempts = excluded.attempts,
             replays = excluded.replays, dead_at = excluded.dead_at, blocks_lane = excluded.blocks_lane
    ),
    counted as (${journalDeaths('removed')}
    ),
    noted as (${noteDeaths(
      `(select *, id as delivery_id, 'expired' as reason, last_status_code as status_code, last_error_class as error_class
          from removed) as died`,
    )}
    )
    select count(*)::int as ended from removed`,
};

export async function expireWaiting(
  pool: Pool,
  endpointId: Uuid,
  agedBefore: number,
  except: readonly Uuid[],
  blocksLane: boolean,
): Promise<number> {
  const { rows } = await pool.query<{ ended: number }>({
    ...EXPIRE,
    values: [
      endpointId,
      firstIdAt(agedBefore),
      agedBefore / 1000,
      `{${except.join(',')}}`,
      CHUNK,
      blocksLane,
    ],
  });
  return rows[0]!.ended;
}

// Uses the index of scheduled deliveries, of which a FIFO endpoint has none: usually an empty range.
const MOVE_TO_FIFO = {
  name: 'put_in_order',
  text: `
    with unmarked as materialized (
      select id from posthorn.queue where endpoint_id = $1 and due_at is not null and not fifo
       order by due_at limit $2 for update skip locked
    )
    update posthorn.queue q set fifo = true from unmarked u where q.id = u.id`,
};

/** Marks deliveries that were stored before their endpoint became FIFO. */
export async function moveToFifo(pool: Pool, endpointId: Uuid): Promise<number> {
  const { rowCount } = await pool.query({ ...MOVE_TO_FIFO, values: [endpointId, CHUNK] });
  return rowCount ?? 0;
}

/**
 * Records requests that are on the wire while their shard is handed over: the next owner waits for their deadline. The
 * start does not count as a crash.
 */
export async function recordOnWire(
  pool: Pool,
  deliveries: readonly { id: Uuid; startedAt: number }[],
): Promise<void> {
  await pool.query(
    `update posthorn.queue q set started_at = to_timestamp(t.started_at),
            careful_starts = greatest(q.careful_starts - 1, 0)
       from unnest($1::uuid[], $2::float8[]) as t(id, started_at) where q.id = t.id`,
    [
      `{${deliveries.map(({ id }) => id).join(',')}}`,
      `{${deliveries.map(({ startedAt }) => startedAt / 1000).join(',')}}`,
    ],
  );
}
