/** Mode `last`: reads the waiting deliveries of a key that decide which one is sent, even if a million wait (docs/shaping.md). */
import type { Uuid } from '../../domain/ids.ts';
import { type DebounceRequest, MAX_GROUP, onWireSince } from '../../ports/debouncer.ts';
import type { Client } from '../database.ts';
import { isStartedSince, waitingOfKey } from './supersede.ts';

/** How many of the oldest deliveries of a large group are read. */
const OLDEST_READ = 100;

interface Reader {
  readonly client: Client;
  readonly request: DebounceRequest;
  readonly underWay: readonly Uuid[];
}

/** The waiting deliveries of a key. */
export interface Group {
  readonly key: string;
  readonly newest: Uuid;
  readonly newest_seq: string;
  /** The oldest delivery that was chosen: it is sent even if newer ones arrive. */
  readonly chosen: Uuid | null;
  readonly chosen_seq: string | null;
  readonly since: number;
  /** Counting stops at one more than `maxEnded` or `MAX_GROUP`, whichever is larger. */
  readonly count: number;
  readonly is_busy: boolean;
}

const IS_ON_WIRE = `(q.id = any ($3::uuid[]) or (q.id <> all ($4::uuid[])
               and ${isStartedSince('$5')}))`;

/** Reads the groups of these keys. Of a group with more than `maxEnded` deliveries, reads only those that can decide. */
export async function readGroups(reader: Reader, keys: readonly string[]): Promise<Group[]> {
  const { client, request, underWay } = reader;
  const { rows } = await client.query<Group>({
    name: 'read_debounce_groups',
    text: `
      select t.key, (array_agg(q.id order by q.seq desc))[1] as newest, max(q.seq) as newest_seq,
             (array_agg(q.id order by q.seq) filter (where q.chosen and q.attempts = 0))[1] as chosen,
             min(q.seq) filter (where q.chosen and q.attempts = 0) as chosen_seq,
             extract(epoch from min(q.since))::float8 * 1000 as since, count(*)::int as count,
             bool_or(${IS_ON_WIRE}) as is_busy
        from unnest($2::text[]) as t(key)
       cross join lateral (select q.* from (${waitingOfKey('desc')}) q where q.replays = 0 limit $6) q
       group by t.key`,
    values: [
      request.endpointId,
      keys,
      underWay,
      request.asked.map(({ id }) => id),
      onWireSince(request) / 1000,
      Math.max(request.maxEnded, MAX_GROUP) + 1,
    ],
  });
  const groups: Group[] = [];
  for (const row of rows) groups.push(row.count > request.maxEnded ? await readLargeGroup(reader, row) : row);
  return groups;
}

/**
 * Adds the oldest deliveries, the chosen ones and those under way to the newest ones. A delivery is sent when no older one of its
 * key is left, so a delivery that an earlier owner sent is among the oldest.
 */
async function readLargeGroup({ client, request, underWay }: Reader, newest: Group): Promise<Group> {
  type Rest = Pick<Group, 'chosen' | 'chosen_seq' | 'since' | 'is_busy'>;
  const { rows } = await client.query<Rest>({
    name: 'read_large_debounce_group',
    text: `
      with t as materialized (select $2::text as key),
      rest as materialized (
        (select q.id, q.seq, q.attempts, q.started_at, q.chosen, q.since
           from t cross join lateral (${waitingOfKey('asc')}) q where q.replays = 0 limit ${OLDEST_READ})
        union all
        select q.id, q.seq, q.attempts, q.started_at, k.chosen, k.since
          from posthorn.debounce_keys k join posthorn.queue q on q.id = k.delivery_id
         where k.endpoint_id = $1 and k.key = $2 and k.chosen and q.endpoint_id = $1 and q.replays = 0
        union all
        select q.id, q.seq, q.attempts, q.started_at, k.chosen, k.since
          from posthorn.debounce_keys k join posthorn.queue q on q.id = k.delivery_id
         where k.delivery_id = any ($3::uuid[]) and k.endpoint_id = $1 and k.key = $2 and q.endpoint_id = $1 and q.replays = 0
      )
      select (array_agg(q.id order by q.seq) filter (where q.chosen and q.attempts = 0))[1] as chosen,
             min(q.seq) filter (where q.chosen and q.attempts = 0) as chosen_seq,
             extract(epoch from min(q.since))::float8 * 1000 as since, coalesce(bool_or(${IS_ON_WIRE}), false) as is_busy
        from rest q`,
    values: [
      request.endpointId,
      newest.key,
      underWay,
      request.asked.map(({ id }) => id),
      onWireSince(request) / 1000,
    ],
  });
  const { chosen, chosen_seq, since, is_busy } = rows[0]!;
  return {
    ...newest,
    chosen,
    chosen_seq,
    since: Math.min(newest.since, since),
    is_busy: is_busy || newest.is_busy,
  };
}
