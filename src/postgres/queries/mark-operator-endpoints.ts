import type { Pool } from '../database.ts';

/**
 * Marks the endpoints that got the operational events of all tenants because of their tenant, before that became a setting
 * of the endpoint. Runs at every start, and changes rows only the first time.
 */
export async function markOperatorEndpoints(pool: Pool, operatorTenant: string): Promise<void> {
  await pool.query(
    `update posthorn.endpoints
        set config = case when tenant = $1 then jsonb_set(config, '{operator}', 'true') else config - 'operator' end
      where config->'operator' = 'null'::jsonb`,
    [operatorTenant],
  );
}
