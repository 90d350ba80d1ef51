import type { Pool } from '../database.ts';

export interface DeadLetterDepth {
  readonly total: number;
  /** Those that have most, at most as many as were asked for. */
  readonly tenants: readonly { readonly tenant: string; readonly count: number }[];
}

/**
 * How many dead letters there are, and whose. By the index of tenants alone, up to `most` rows: a million of them take
 * some tens of milliseconds, and beyond that the alert has long gone off.
 */
export async function countDeadLetters(
  pool: Pool,
  { tenants, most }: { tenants: number; most: number },
): Promise<DeadLetterDepth> {
  const { rows } = await pool.query<{ tenant: string; count: number; total: number }>({
    name: 'count_dead_letters',
    text: `
      select tenant, count(*)::int, (sum(count(*)) over ())::int as total
        from (select tenant from posthorn.dead_letters limit $2) d
       group by tenant order by count desc, tenant limit $1`,
    // One row more than none at all: the total stands in it.
    values: [Math.max(1, tenants), most],
  });
  return {
    total: rows[0]?.total ?? 0,
    tenants: rows.slice(0, tenants).map(({ tenant, count }) => ({ tenant, count })),
  };
}
