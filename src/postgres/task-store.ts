import type { ClaimedTask, TaskStore } from '../ports/task-store.ts';
import type { Database } from './database.ts';
import {
  type ClaimedTask as ClaimedRow,
  claimTask,
  failTask,
  releaseTask,
  workOnTask,
} from './queries/tasks.ts';
import { type ExpungeOptions, workOnExpunge } from './queries/work-on-expunge.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresTaskStore(
  database: Pick<Database, 'pool'>,
  expunge: ExpungeOptions = { operatorTenant: 'posthorn', settleMs: 0 },
): TaskStore {
  const pool = database.pool('api');
  /** What the statements need to know about the claimed tasks, by task and runner. */
  const rows = new Map<string, ClaimedRow>();
  const keyOf = ({ id, runner }: ClaimedTask): string => `${id} ${runner}`;
  const endClaim = (task: ClaimedTask): void => void rows.delete(keyOf(task));
  return {
    async claim(runner, silentMs) {
      const row = await withStoreErrors(claimTask(pool, runner, silentMs));
      if (row === null) return null;
      rows.set(keyOf(row), row);
      return { id: row.id, runner };
    },
    async runChunk(task, maxDeliveries, now) {
      const row = rows.get(keyOf(task));
      if (row === undefined) return { isRunning: false, isWaiting: false, endpointIds: [] };
      const work =
        row.kind === 'expunge'
          ? workOnExpunge(pool, row, maxDeliveries, expunge)
          : workOnTask(pool, row, maxDeliveries, now ?? null);
      const { state, isWaiting = false, endpoints } = await withStoreErrors(work);
      if (state !== 'running') endClaim(task);
      return { isRunning: state === 'running', isWaiting, endpointIds: endpoints };
    },
    async release(task) {
      endClaim(task);
      await withStoreErrors(releaseTask(pool, task.id, task.runner));
    },
    async fail(task, reason) {
      endClaim(task);
      await withStoreErrors(failTask(pool, task.id, task.runner, reason));
    },
  };
}
