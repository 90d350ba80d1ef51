/** Runs the task that expunges a tenant: one chunk per transaction, with its progress. */
import type { Uuid } from '../../domain/ids.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';
import {
  deleteClosedTenant,
  deleteTenantRows,
  expungeOperationalEvents,
  hasUncountedStatistics,
} from './expunge-tenant.ts';
import type { ChunkAnswer, ClaimedTask } from './tasks.ts';
import { isExpunging } from './tenants.ts';

export interface ExpungeOptions {
  /** The operator's tenant, which has the operational events about all tenants. */
  readonly operatorTenant: string;
  /**
   * The minimum time for which the task looks for new rows. Processes that do not know of it yet may accept events for a
   * moment, and results of requests on the wire arrive.
   */
  readonly settleMs: number;
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

export async function workOnExpunge(
  pool: Pool,
  task: ClaimedTask,
  max: number,
  options: ExpungeOptions,
): Promise<ChunkAnswer> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ tenant: string; cursor: Uuid | null; age_ms: number }>(
      `select selection ->> 'tenant' as tenant, cursor,
              extract(epoch from clock_timestamp() - created_at)::float8 * 1000 as age_ms
         from posthorn.tasks where id = $1 and state = 'running' and runner = $2 for update`,
      [task.id, task.runner],
    );
    const found = rows[0];
    if (found === undefined) return { state: null, endpoints: [] };
    const { tenant, age_ms } = found;
    // If the tenant is no longer marked as closed, it accepts events again, and those must stay.
    if (!(await isExpunging(client, tenant))) return stop(client, task);
    const deleted = await deleteTenantRows(client, { id: task.id, tenant }, max);
    let cursor: Uuid | null = found.cursor ?? FIRST_ID;
    let isWaiting = false;
    if (deleted === 0) {
      const after = await expungeOperationalEvents(client, { ...options, tenant }, cursor, max);
      if (after === null) {
        if (age_ms >= options.settleMs && !(await hasUncountedStatistics(client, tenant)))
          return finish(client, task, tenant);
        // Look again from the start: operational events may follow.
        cursor = FIRST_ID;
        isWaiting = true;
      } else cursor = after;
    }
    await client.query(
      `update posthorn.tasks
          set done = done + $2, total = greatest(total, done + $2), cursor = $3, heartbeat_at = clock_timestamp(), updated_at = now()
        where id = $1`,
      [task.id, deleted, cursor],
    );
    return { state: 'running', isWaiting, endpoints: [] };
  });
}

async function stop(client: Client, task: ClaimedTask): Promise<ChunkAnswer> {
  await client.query(
    `update posthorn.tasks
        set state = 'failed', error = 'The tenant is no longer marked for deletion. Its remaining data was not deleted.',
            runner = null, finished_at = clock_timestamp(), updated_at = now()
      where id = $1`,
    [task.id],
  );
  return { state: 'failed', endpoints: [] };
}

async function finish(client: Client, task: ClaimedTask, tenant: string): Promise<ChunkAnswer> {
  await deleteClosedTenant(client, tenant);
  await client.query(
    `update posthorn.tasks
        set state = 'done', total = done, finished_at = clock_timestamp(), heartbeat_at = clock_timestamp(), updated_at = now()
      where id = $1`,
    [task.id],
  );
  // Remove the tenant's name from this task, and from earlier ones that failed.
  await client.query(
    `update posthorn.tasks set selection = selection || '{"tenant": null}' where kind = 'expunge' and selection ->> 'tenant' = $1`,
    [tenant],
  );
  return { state: 'done', endpoints: [] };
}
