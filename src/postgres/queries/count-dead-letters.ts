import type { Pool } from '../database.ts';

export interface DeadLetterDepth {
  readonly total: number;
  /** The tenants with the most dead letters, at most as many as requested. */
  readonly tenants: readonly { readonly tenant: string; readonly count: number }[];
}

/**
 * Counts dead letters, in all and by tenant, from the index of tenants alone and up to `max` rows. A million rows take
 * some tens of milliseconds, and an alert fires long before.
 */
export async function countDeadLetters(
  pool: Pool,
  { tenants, max }: { tenants: number; max: number },
): Promise<DeadLetterDepth> {
  const { rows } = await pool.query<{ tenant: string; count: number; total: number }>({
    name: 'count_dead_letters',
    text: `
      select tenant, count(*)::int, (sum(count(*)) over ())::int as total
        from (select tenant from posthorn.dead_letters limit $2) d
       group by tenant order by count desc, tenant limit $1`,
    // At least one row, because it carries the total.
    values: [Math.max(1, tenants), max],
  });
  return {
    total: rows[0]?.total ?? 0,
    tenants: rows.slice(0, tenants).map(({ tenant, count }) => ({ tenant, count })),
  };
}
