import type { Uuid } from '../domain/ids.ts';
import type { ClaimedTask, TaskStore } from '../ports/task-store.ts';
import type { Database } from './database.ts';
import {
  type ClaimedTask as ClaimedRow,
  claimTask,
  failTask,
  releaseTask,
  workOnTask,
} from './queries/tasks.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresTaskStore(database: Pick<Database, 'pool'>): TaskStore {
  const pool = database.pool('api');
  /** What the statements need to know about the claimed tasks. */
  const rows = new Map<Uuid, ClaimedRow>();
  const endClaim = ({ id }: ClaimedTask): void => void rows.delete(id);
  return {
    async claim(runner, silentMs) {
      const row = await withStoreErrors(claimTask(pool, runner, silentMs));
      if (row === null) return null;
      rows.set(row.id, row);
      return { id: row.id, runner };
    },
    async runChunk(task, maxDeliveries) {
      const { state, endpoints } = await withStoreErrors(workOnTask(pool, rows.get(task.id)!, maxDeliveries));
      if (state !== 'running') endClaim(task);
      return { isRunning: state === 'running', endpointIds: endpoints };
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
