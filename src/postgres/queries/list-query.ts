/**
 * How lists are read: by one index that ends in the id, newest first, from a cursor on. Which index it is is not left to
 * the planner. Told `tenant = x order by id desc limit 50`, it expects the tenant's rows to be spread evenly and may walk
 * down the primary key, past millions of rows of others if this tenant has none of late.
 */
import type { Uuid } from '../../domain/ids.ts';

/**
 * How many rows a request looks at, at most, in one place, for those that fit a condition that no index knows. An index
 * for every condition would be paid for by every event.
 */
export const LOOK_AT = 5_000;

/** Ids from (inclusive) and to (exclusive). */
export interface IdRange {
  readonly from: Uuid | null;
  readonly before: Uuid | null;
}

export interface Found<Row> {
  /** Newest first, at most as many as were asked for. */
  readonly rows: Row[];
  /** Not null: the look ended before there were as many as were asked for. What is older than this was not looked at. */
  readonly resumeAt: Uuid | null;
}

type Bind = (value: unknown) => string;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * SQL of a value that the planner does not get to see. From what it saw it would conclude that there are next to no rows
 * between a tenant and the same tenant, and that it may as well sort them: 3 million, in 10 s.
 */
export const unseen = (bound: string, type: 'text' | 'uuid' = 'text'): string => `(select ${bound}::${type})`;

export interface IndexRange {
  readonly conditions: string[];
  readonly order: string;
}

/**
 * Rows of the alias `q` by the index over `columns` and the id; `values` is SQL. As a comparison of rows in the order of
 * rows, so that no other index will do.
 */
export function byIndex(
  columns: readonly string[],
  values: readonly string[],
  { from, before }: IdRange,
  bind: Bind,
): IndexRange {
  const key = [...columns, 'id'].map((column) => `q.${column}`);
  const conditions = [
    `(${key.join(', ')}) >= (${[...values, `${bind(from ?? FIRST_ID)}::uuid`].join(', ')})`,
    `(${key.join(', ')}) < (${[...values, `${bind(before ?? LAST_ID)}::uuid`].join(', ')})`,
  ];
  return { conditions, order: key.map((column) => `${column} desc`).join(', ') };
}

/** The rows of one table that fit: `range` by the index, and `fits` (on `q` too) by looking at them. */
export function lookInto(
  table: string,
  columns: string,
  range: IndexRange,
  fits: readonly string[],
  limit: string,
): string {
  const newest = (shown: string, most: string) =>
    `select ${shown} from posthorn.${table} q where ${range.conditions.join(' and ')} order by ${range.order} limit ${most}`;
  if (fits.length === 0) return newest(`${columns}, null::text as reached_id`, limit);
  return `
    with looked_at as materialized (${newest(columns, String(LOOK_AT))}),
    found as materialized (select * from looked_at q where ${fits.join(' and ')} order by ${range.order} limit ${limit})
    select found.*, reached.id as reached_id
      from (${reachedBy('looked_at', LOOK_AT, 'found', limit)}) reached(id)
      left join found on true
     order by found.id desc`;
}

/**
 * SQL for how far back a look got: null if it came to the end. It is only asked if the look did not find enough: a look is
 * no longer than it has to be, and counting what it looked at would make it go on.
 */
export const reachedBy = (looked: string, most: number, found: string, limit: string): string => `
  select case when (select count(*) from ${found}) < ${limit}
              then (select case when count(*) = ${most} then min(id::text) end from ${looked}) end`;

/** Of the rows of a statement of `lookInto`. */
export function toFound<Row extends { id: Uuid }>(
  rows: readonly (Row & { reached_id: Uuid | null })[],
  limit: number,
): Found<Row> {
  const reached = rows[0]?.reached_id ?? null;
  // Without any that fits there is still one row, to say how far the look got.
  const fitting = rows.filter(({ id }) => id !== null && (reached === null || id >= reached));
  return { rows: fitting, resumeAt: fitting.length < limit ? reached : null };
}
