import type { Uuid } from '../../domain/ids.ts';
import type { PayloadSearch } from '../../domain/payload-search.ts';
import type { Pool } from '../database.ts';
import {
  type EventFilter,
  type EventView,
  type EventWithData,
  eventColumnsOf,
  eventConditions,
  eventRange,
} from './events.ts';
import type { IdRange } from './list-query.ts';

type Needles = PayloadSearch['needles'];

/** An event and the size of its data, which is loaded later. */
export interface SizedEvent {
  readonly id: Uuid;
  readonly bytes: number;
}

export interface ExaminedEvents {
  /** Events whose data contains the needles, newest first. */
  readonly candidates: SizedEvent[];
  readonly examined: number;
  /** The oldest event that was examined. Null: there was none. */
  readonly reachedId: Uuid | null;
  /** Whether there are no older events. */
  readonly isEnd: boolean;
}

/** A statement stops after the event with which it has examined this much data. */
const MAX_EXAMINED_BYTES = 64_000_000;

const BYTES = 'coalesce(octet_length(q.data), 0)';

/**
 * Looks for byte strings in the data of the `limit` newest events of the filter, or of fewer if they are large. There is no
 * index on payloads: it would slow down every event for a search that few users need.
 */
export async function examinePayloads(
  pool: Pool,
  filter: EventFilter,
  needles: Needles,
): Promise<ExaminedEvents> {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const range = eventRange(filter, bind);
  const conditions = [...eventConditions(filter, bind), containsAll(needles, bind)];
  const { rows } = await pool.query<
    SizedEvent & { examined: number; reached_id: Uuid | null; is_end: boolean }
  >(
    `with newest as materialized (
       select q.*, sum(${BYTES}) over (order by ${range.order} rows unbounded preceding) as bytes_so_far
         from posthorn.events q where ${range.conditions.join(' and ')} order by ${range.order} limit $1
     ),
     examined as materialized (
       select q.* from newest q where q.bytes_so_far - ${BYTES} < ${MAX_EXAMINED_BYTES}
     ),
     found as (select q.id, ${BYTES} as bytes from examined q where ${conditions.join(' and ')})
     select found.*, total.examined, total.reached_id,
            total.examined < $1 and total.examined = (select count(*) from newest) as is_end
       from (select count(*)::int as examined, min(id::text) as reached_id from examined) total
       left join found on true
      order by found.id desc`,
    values,
  );
  const { examined, reached_id, is_end } = rows[0]!;
  const candidates = rows.filter(({ id }) => id !== null);
  return { candidates, examined, reachedId: reached_id, isEnd: is_end };
}

/** The newest events, without their data. A tenant of null stands for all. */
export async function listNewestEvents(
  pool: Pool,
  tenant: string | null,
  limit: number,
): Promise<(SizedEvent & { readonly type: string })[]> {
  const values: unknown[] = [limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const range = eventRange({ tenant, type: null, from: null, before: null, limit }, bind);
  const { rows } = await pool.query<SizedEvent & { type: string }>(
    `select q.id, q.type, ${BYTES} as bytes from posthorn.events q
      where ${range.conditions.join(' and ')} order by ${range.order} limit $1`,
    values,
  );
  return rows;
}

/** An event without its data. */
export type EventHead = SizedEvent & Pick<EventView, 'type' | 'idempotency_key' | 'options'>;

/** The newest events of a range without their data, newest first: up to `limit`. */
export async function readEventHeads(
  pool: Pool,
  tenant: string,
  range: IdRange,
  limit: number,
): Promise<EventHead[]> {
  const values: unknown[] = [limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { conditions, order } = eventRange({ ...range, tenant, type: null, limit }, bind);
  const { rows } = await pool.query<EventHead>(
    `select q.id, q.type, q.idempotency_key, q.options, ${BYTES} as bytes from posthorn.events q
      where ${conditions.join(' and ')} order by ${order} limit $1`,
    values,
  );
  return rows;
}

/** Those of the events whose data contains the needles, newest first. */
export async function findCandidates(
  pool: Pool,
  ids: readonly Uuid[],
  needles: Needles,
): Promise<SizedEvent[]> {
  const values: unknown[] = [ids];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { rows } = await pool.query<SizedEvent>(
    `select q.id, ${BYTES} as bytes from posthorn.events q
      where q.id = any ($1::uuid[]) and ${containsAll(needles, bind)} order by q.id desc`,
    values,
  );
  return rows;
}

/** The events with their data, newest first. */
export async function loadPayloads(pool: Pool, events: readonly SizedEvent[]): Promise<EventWithData[]> {
  const { rows } = await pool.query<EventWithData>(
    `select ${eventColumnsOf('q')}, q.data from posthorn.events q
      where q.id = any ($1::uuid[]) order by q.id desc`,
    [events.map(({ id }) => id)],
  );
  return rows;
}

const containsAll = (needles: Needles, bind: (value: unknown) => string): string =>
  needles
    .map(
      (group) => `(${group.map((needle) => `position(${bind(needle)}::bytea in q.data) > 0`).join(' or ')})`,
    )
    .join(' and ');
