import type { Uuid } from '../../domain/ids.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import { discardMoves } from './dead-letters.ts';
import type { IdRange } from './list-query.ts';
import { replayMoves } from './replay.ts';
import { type Selection, selectDeliveries } from './select-deliveries.ts';

export const taskKinds = ['replay', 'discard', 'expunge', 'archive', 'restore'] as const;
export type TaskKind = (typeof taskKinds)[number];
export const taskStates = ['queued', 'running', 'done', 'cancelled', 'failed'] as const;
export type TaskState = (typeof taskStates)[number];

export interface TaskView {
  readonly id: Uuid;
  readonly kind: TaskKind;
  readonly state: TaskState;
  readonly selection: Selection;
  readonly why: string | null;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  /** How many of the failed ones belong to a disabled or deleted endpoint. The others have changed since the task was created. */
  readonly failed_off: number;
  readonly tenant: string | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly finished_at: Date | null;
  readonly error: string | null;
}

const COLUMNS = `id, kind, state, selection, why, total, done, failed, failed_off, tenant, created_by, created_at, updated_at,
                 finished_at, error`;

export async function createTask(
  client: Queryable,
  task: Pick<TaskView, 'id' | 'kind' | 'selection' | 'why' | 'total' | 'tenant' | 'created_by'>,
): Promise<TaskView> {
  const { rows } = await client.query<TaskView>(
    `with made as (
       insert into posthorn.tasks (id, kind, selection, why, total, tenant, created_by)
       values ($1, $2, $3, $4, $5, $6, $7) returning ${COLUMNS}
     )
     select made.*, pg_notify('${CHANNEL_NAMES.tasks}', '') from made`,
    [task.id, task.kind, JSON.stringify(task.selection), task.why, task.total, task.tenant, task.created_by],
  );
  return rows[0]!;
}

/** Makes transactions that create tasks for the same tenant wait for each other, so that two do not both take the last place. */
export async function lockTasksOf(client: Queryable, tenant: string): Promise<void> {
  await client.query('select pg_advisory_xact_lock(hashtextextended($2, $1))', [
    ADVISORY_LOCKS.tenantTasks,
    tenant,
  ]);
}

/** Counts the tasks of a tenant that have not ended, up to `limit`. */
export async function countOpenTasks(client: Queryable, tenant: string, limit: number): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from (
       select from posthorn.tasks where tenant = $1 and state in ('queued', 'running') limit $2
     ) as open`,
    [tenant, limit],
  );
  return rows[0]!.count;
}

export async function findTask(pool: Pool, id: Uuid, tenant: string | null): Promise<TaskView | null> {
  const { rows } = await pool.query<TaskView>(
    `select ${COLUMNS} from posthorn.tasks where id = $1 and ($2::text is null or tenant = $2)`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

export async function listTasks(
  pool: Pool,
  page: IdRange & { tenant: string | null; state: TaskState | null; limit: number },
): Promise<TaskView[]> {
  const values: unknown[] = [page.limit];
  const conditions = ['true'];
  if (page.tenant !== null) conditions.push(`tenant = $${values.push(page.tenant)}`);
  if (page.state !== null) conditions.push(`state = $${values.push(page.state)}`);
  if (page.from !== null) conditions.push(`id >= $${values.push(page.from)}`);
  if (page.before !== null) conditions.push(`id < $${values.push(page.before)}`);
  const { rows } = await pool.query<TaskView>(
    `select ${COLUMNS} from posthorn.tasks where ${conditions.join(' and ')} order by id desc limit $1`,
    values,
  );
  return rows;
}

/** Cancels a task after its chunk in progress. Returns false if the task has already ended. */
export async function cancelTask(client: Queryable, id: Uuid): Promise<boolean> {
  const { rowCount } = await client.query(
    `update posthorn.tasks set state = 'cancelled', runner = null, updated_at = now(), finished_at = now()
      where id = $1 and state in ('queued', 'running')`,
    [id],
  );
  return rowCount === 1;
}

export interface ClaimedTask extends TaskView {
  readonly runner: Uuid;
}

const IS_OPEN = "state in ('queued', 'running')";
const IS_FREE = `(kind = any ($3::text[]) and (runner is null or heartbeat_at > clock_timestamp()
                   or heartbeat_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000)))`;
/**
 * SQL: when a task of the tenant that had a turn ended last. By time, with an index of these tasks alone (0050_task_turns.sql):
 * tasks that were cancelled before their first turn do not hide it.
 */
const lastEndOf = (ofTenant: string): string => `
  (select t.updated_at from posthorn.tasks t
    where ${ofTenant} and not t.${IS_OPEN} and t.claimed_by is not null and t.updated_at <= clock_timestamp()
    order by t.updated_at desc limit 1)`;

/**
 * Tenants take turns. Of the tasks without a runner, takes one of the tenant whose last turn was earliest, and of its tasks
 * the one that has waited longest. Tasks without a tenant share a turn.
 *
 * A task has no runner if it is new, its runner released it, or its runner sent no heartbeat for `silentMs`. A heartbeat in
 * the future is from before the clock stepped back and proves nothing. If its runner is alive, it only loses the task.
 * Turns in the future do not count for the same reason. Materialized, because `skip locked … limit` must not be evaluated twice.
 * `claimed_by` says that this release knows the kind: claims of earlier ones without it are skipped (0035_notices.sql).
 */
export async function claimTask(
  pool: Pool,
  runner: Uuid,
  silentMs: number,
  kinds: readonly TaskKind[] = ['replay', 'discard', 'expunge'],
): Promise<ClaimedTask | null> {
  const { rows } = await pool.query<ClaimedTask>(
    `with open as materialized (
       select id, tenant, ${IS_FREE} as is_free,
              case when claimed_by is not null and updated_at <= clock_timestamp() then updated_at end as last_turn
         from posthorn.tasks where ${IS_OPEN}
     ),
     tenants as materialized (
       select o.tenant, greatest(max(o.last_turn),
                case when o.tenant is null then ${lastEndOf('t.tenant is null')} else ${lastEndOf('t.tenant = o.tenant')} end) as last_turn
         from open o group by o.tenant having bool_or(o.is_free)
     ),
     free as materialized (
       select t.id from open o join tenants n on n.tenant is not distinct from o.tenant join posthorn.tasks t on t.id = o.id
        where o.is_free and t.${IS_OPEN} and ${IS_FREE}
        order by n.last_turn nulls first, t.updated_at limit 1 for update of t skip locked
     )
     update posthorn.tasks t set state = 'running', runner = $1, claimed_by = $1, heartbeat_at = clock_timestamp(), updated_at = now()
       from free f where t.id = f.id
     returning t.*`,
    [runner, silentMs, kinds],
  );
  return rows[0] ?? null;
}

/** Gives the task up, so that another task gets its turn. */
export async function releaseTask(pool: Pool, id: Uuid, runner: Uuid): Promise<void> {
  await pool.query(
    'update posthorn.tasks set runner = null, updated_at = now() where id = $1 and runner = $2',
    [id, runner],
  );
}

export async function failTask(pool: Pool, id: Uuid, runner: Uuid, error: string): Promise<void> {
  await pool.query(
    `update posthorn.tasks set state = 'failed', error = $3, runner = null, updated_at = now(), finished_at = now()
      where id = $1 and runner = $2 and state = 'running'`,
    [id, runner, error],
  );
}

export interface ChunkAnswer {
  /** Null: another runner has the task, or it was cancelled; nothing was changed. */
  readonly state: TaskState | null;
  /** True: there was nothing to do for now. */
  readonly isWaiting?: boolean;
  /** The endpoints whose deliveries were changed: their lanes must be woken. */
  readonly endpoints: readonly Uuid[];
}

const FIRST_CURSOR = "'00000000-0000-0000-0000-000000000000'::uuid";

/**
 * Runs the next chunk of a task. One statement moves the deliveries and the cursor, so a killed process leaves the chunk
 * either undone or done. The task's row is locked first, so that a cancel comes before or after a chunk. The cursor is a
 * scalar subquery, not a join: only then does each table return its rows in the order of its index, and stop at the limit.
 */
export async function workOnTask(
  pool: Pool,
  task: ClaimedTask,
  chunk: number,
  now: number | null,
): Promise<ChunkAnswer> {
  const values: unknown[] = [task.id, task.runner, chunk];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const query = selectDeliveries(
    task.selection,
    { after: '(select cursor from task)', selectedAt: '(select created_at from task)', limit: '$3::int' },
    bind,
  );
  const isReplay = task.kind === 'replay';
  const moves = isReplay
    ? replayMoves(bind(now === null ? null : now / 1000))
    : discardMoves(bind(task.created_by), bind(task.why));
  const off = isReplay
    ? 'select from chunk where endpoint_id not in (select id from live)'
    : 'select where false';
  const { rows } = await pool.query<ChunkAnswer>(
    `with task as materialized (
       select t.id, coalesce(t.cursor, ${FIRST_CURSOR}) as cursor, t.created_at from posthorn.tasks t
        where t.id = $1 and t.state = 'running' and t.runner = $2 for update
     ),
     chunk as materialized (${query}),
     ${moves},
     counted as (
       select (select count(*)::int from chunk) as found, (select count(*)::int from moved) as moved,
              (select count(*)::int from (${off}) as off) as off, (select id from chunk order by id desc limit 1) as last
     ),
     progress as (
       update posthorn.tasks t
          set cursor = coalesce(c.last, t.cursor), done = t.done + c.moved, failed = t.failed + c.found - c.moved,
              failed_off = t.failed_off + c.off,
              state = case when c.found < $3 then 'done' else t.state end,
              finished_at = case when c.found < $3 then clock_timestamp() end,
              total = case when c.found < $3 then t.done + t.failed + c.found
                           else greatest(t.total, t.done + t.failed + c.found) end,
              heartbeat_at = clock_timestamp(), updated_at = now()
         from task k, counted c where t.id = k.id
       returning t.state
     )
     select (select state from progress) as state, array(select distinct endpoint_id::text from moved) as endpoints`,
    values,
  );
  return rows[0]!;
}
