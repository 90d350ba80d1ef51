/**
 * SQL for lists: newest first, from a cursor on, by one index that ends in the id. The query forces the choice of the
 * index. For `tenant = x order by id desc limit 50` the planner assumes that the tenant's rows are spread evenly, and may
 * walk the primary key past millions of rows of other tenants.
 */
import type { Uuid } from '../../domain/ids.ts';

/**
 * How many rows of one table a request examines at most for a condition without an index. An index for every condition
 * would slow down every event.
 */
export const MAX_EXAMINED = 5_000;

/** Ids from `from` (inclusive) to `before` (exclusive). Null: no bound. */
export interface IdRange {
  readonly from: Uuid | null;
  readonly before: Uuid | null;
}

export interface ListResult<Row> {
  /** Newest first, at most as many as requested. */
  readonly rows: Row[];
  /** The oldest examined id, if the query examined its maximum of rows before it found enough. Otherwise null. */
  readonly resumeAt: Uuid | null;
}

type Bind = (value: unknown) => string;

export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * SQL for a value that the planner cannot see. If it saw that both bounds are the same tenant, it would expect nearly no rows
 * and sort them: 3 million rows took 10 s.
 */
export const hideFromPlanner = (bound: string, type: 'text' | 'uuid' = 'text'): string =>
  `(select ${bound}::${type})`;

export interface IndexRange {
  readonly conditions: string[];
  readonly order: string;
}

/**
 * The rows of alias `q` in the index over `columns` and the id; `values` are SQL. The conditions and the order compare
 * whole rows, which only this index can serve.
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

/** SQL for the rows of one table in `range` that meet `conditions`. No index serves these; they refer to alias `q`. */
export function listQuery(
  table: string,
  columns: string,
  range: IndexRange,
  conditions: readonly string[],
  limit: string,
): string {
  const newest = (shown: string, maxRows: string) =>
    `select ${shown} from posthorn.${table} q where ${range.conditions.join(' and ')} order by ${range.order} limit ${maxRows}`;
  if (conditions.length === 0) return newest(`${columns}, null::text as reached_id`, limit);
  return `
    with examined as materialized (${newest(columns, String(MAX_EXAMINED))}),
    found as materialized (select * from examined q where ${conditions.join(' and ')} order by ${range.order} limit ${limit})
    select found.*, reached.id as reached_id
      from (${reachedBy('examined', MAX_EXAMINED, 'found', limit)}) reached(id)
      left join found on true
     order by found.id desc`;
}

/**
 * SQL for the oldest id that was examined; null if all rows were, or enough were found. Counting the examined rows would
 * make PostgreSQL examine all of them, so that happens only if too few were found.
 */
export const reachedBy = (examined: string, maxRows: number, found: string, limit: string): string => `
  select case when (select count(*) from ${found}) < ${limit}
              then (select case when count(*) = ${maxRows} then min(id::text) end from ${examined}) end`;

/** Splits `reached_id` off the rows of a `listQuery`. */
export function toListResult<Row extends { id: Uuid }>(
  rows: readonly (Row & { reached_id: Uuid | null })[],
  limit: number,
): ListResult<Row> {
  const reached = rows[0]?.reached_id ?? null;
  // If no row matches there is still one, with `reached_id` only.
  const matching = rows.filter(({ id }) => id !== null && (reached === null || id >= reached));
  return { rows: matching, resumeAt: matching.length < limit ? reached : null };
}
