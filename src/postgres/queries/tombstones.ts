/** Tombstones: what was expunged, by id and time. The archive has a copy of them, for databases that are restored from a backup. */
import { idPrefixes, publicId, type Uuid } from '../../domain/ids.ts';
import type { StoredTombstone } from '../../domain/tombstones.ts';
import type { RecordedPart, TombstoneCopy, Tombstones } from '../../ports/archive-store.ts';
import type { Pool, Queryable } from '../database.ts';

/** The number of the last tombstone. The lock waits for expunges that are not committed: each later one has a higher number. */
export async function readLastTombstone(client: Queryable): Promise<string> {
  await client.query('lock table posthorn.expunged in share mode');
  const { rows } = await client.query<{ seq: string }>(
    'select coalesce(max(seq), 0)::text as seq from posthorn.expunged',
  );
  return rows[0]!.seq;
}

/** What was expunged of the events and attempts between these ids. */
export async function readTombstones(
  client: Queryable,
  { minId, maxId }: Pick<RecordedPart, 'minId' | 'maxId'>,
): Promise<Tombstones> {
  const { rows } = await client.query<{ kind: 'event' | 'tenant' | 'batch'; id: string; at_ms: number }>(
    `select x.kind, x.id, extract(epoch from x.at)::float8 * 1000 as at_ms from posthorn.expunged x
      where x.kind = 'tenant'
         or (x.kind = 'event' and x.id >= posthorn.event_of_delivery($1::uuid)::text and x.id <= $2::uuid::text)
         or (x.kind = 'batch' and x.last_id >= $1::uuid and x.first_id <= $2::uuid)`,
    [minId, maxId],
  );
  const of = (kind: 'event' | 'tenant'): Map<string, number> =>
    new Map(rows.filter((row) => row.kind === kind).map(({ id, at_ms }) => [id, at_ms]));
  const batches = rows.filter(({ kind }) => kind === 'batch').map(({ id }) => publicId(idPrefixes.batch, id));
  return { events: of('event'), tenants: of('tenant'), batches: new Set(batches) };
}

/** Marks an event that is only in the archive as expunged. Its files are rewritten by the next run. */
export async function insertTombstone(client: Queryable, eventId: Uuid): Promise<void> {
  await client.query(
    `insert into posthorn.expunged (kind, id, applied_at) values ('event', $1, now()) on conflict (kind, id) do update set seq = default`,
    [eventId],
  );
}

const COLUMNS = `x.kind, x.id, to_char(x.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, x.endpoint_ids::text[] as endpoint_ids,
                 x.first_id, x.last_id`;

/** Tombstones of a day (UTC), or all. */
export async function listTombstones(client: Queryable, day: string | null): Promise<StoredTombstone[]> {
  const { rows } = await client.query<StoredTombstone>(
    `select ${COLUMNS} from posthorn.expunged x
      where $1::date is null or (x.at >= $1::date at time zone 'UTC' and x.at < ($1::date + 1) at time zone 'UTC') order by x.seq`,
    [day],
  );
  return rows;
}

/**
 * Inserts those that are missing. Upkeep applies them. A tenant may have been expunged twice: the later time counts. Returns how
 * many were new.
 */
export async function mergeTombstones(
  client: Queryable,
  tombstones: readonly StoredTombstone[],
): Promise<number> {
  const { rowCount } = await client.query(
    `insert into posthorn.expunged as x (kind, id, at, endpoint_ids, first_id, last_id)
     select distinct on (kind, id) kind, id, at, coalesce(endpoint_ids, '{}'), first_id, last_id
       from json_to_recordset($1::json) as t(kind text, id text, at timestamptz, endpoint_ids uuid[], first_id uuid, last_id uuid)
      order by kind, id, at desc
         on conflict (kind, id) do update
        set at = excluded.at, endpoint_ids = excluded.endpoint_ids || x.endpoint_ids, applied_at = null, seq = default
      where excluded.at > x.at`,
    [JSON.stringify(tombstones)],
  );
  return rowCount ?? 0;
}

export async function readTombstoneCopy(pool: Pool): Promise<TombstoneCopy> {
  const { rows } = await pool.query<TombstoneCopy>(
    'select tombstones_token as token, tombstones_copied::text as "upTo" from posthorn.archive_state',
  );
  return rows[0] ?? { token: null, upTo: '0' };
}

/** Days with tombstones that have a higher number. */
export async function listChangedDays(pool: Pool, after: string): Promise<string[]> {
  const { rows } = await pool.query<{ day: string }>(
    `select distinct (x.at at time zone 'UTC')::date::text as day from posthorn.expunged x where x.seq > $1::bigint order by 1`,
    [after],
  );
  return rows.map(({ day }) => day);
}

export async function setTombstoneCopy(pool: Pool, { token, upTo }: TombstoneCopy): Promise<void> {
  await pool.query(
    'update posthorn.archive_state set tombstones_token = $1, tombstones_copied = $2::bigint',
    [token, upTo],
  );
}
