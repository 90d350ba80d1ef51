import type { Uuid } from '../../domain/ids.ts';
import type { PayloadSearch } from '../../domain/payload-search.ts';
import type { Pool } from '../database.ts';
import {
  type EventFilter,
  type EventWithData,
  eventColumnsOf,
  eventConditions,
  eventRange,
} from './events.ts';

type Needles = PayloadSearch['needles'];

export interface ExaminedEvents {
  /** Events whose data contains the needles, newest first. */
  readonly candidates: EventWithData[];
  readonly examined: number;
  /** The oldest event that was examined. Null: there was none. */
  readonly reachedId: Uuid | null;
}

/**
 * Looks for byte strings in the data of the `limit` newest events of the filter. There is no index on payloads: it would
 * cost every event, for a question that is asked about few.
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
  const { rows } = await pool.query<EventWithData & { examined: number; reached_id: Uuid | null }>(
    `with examined as materialized (
       select q.* from posthorn.events q where ${range.conditions.join(' and ')} order by ${range.order} limit $1
     ),
     found as (select ${eventColumnsOf('q')}, q.data from examined q where ${conditions.join(' and ')})
     select found.*, total.examined, total.reached_id
       from (select count(*)::int as examined, min(id::text) as reached_id from examined) total
       left join found on true
      order by found.id desc`,
    values,
  );
  return {
    candidates: rows.filter(({ id }) => id !== null),
    examined: rows[0]!.examined,
    reachedId: rows[0]!.reached_id,
  };
}

/** The newest events with their data. A tenant of null stands for all. */
export async function newestEvents(
  pool: Pool,
  tenant: string | null,
  limit: number,
): Promise<EventWithData[]> {
  const values: unknown[] = [limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const range = eventRange({ tenant, type: null, from: null, before: null, limit }, bind);
  const { rows } = await pool.query<EventWithData>(
    `select ${eventColumnsOf('q')}, q.data from posthorn.events q
      where ${range.conditions.join(' and ')} order by ${range.order} limit $1`,
    values,
  );
  return rows;
}

/** Those of the events whose data contains the needles, newest first. */
export async function loadCandidates(
  pool: Pool,
  ids: readonly Uuid[],
  needles: Needles,
): Promise<EventWithData[]> {
  const values: unknown[] = [ids];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { rows } = await pool.query<EventWithData>(
    `select ${eventColumnsOf('q')}, q.data from posthorn.events q
      where q.id = any ($1::uuid[]) and ${containsAll(needles, bind)} order by q.id desc`,
    values,
  );
  return rows;
}

const containsAll = (needles: Needles, bind: (value: unknown) => string): string =>
  needles
    .map(
      (group) => `(${group.map((needle) => `position(${bind(needle)}::bytea in q.data) > 0`).join(' or ')})`,
    )
    .join(' and ');
