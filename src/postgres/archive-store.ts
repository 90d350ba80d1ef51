import type { ArchiveRequests, ArchiveStore } from '../ports/archive-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Client, type Database, inTransaction } from './database.ts';
import {
  clearStale,
  closeArchiveTask,
  forgetParts,
  hasArchiveWork,
  hasParts,
  insertPart,
  listParts,
  listRequested,
  listStaleParts,
  markVerified,
  openArchiveTask,
  readArchiveStatus,
  readDeploymentId,
  readTime,
  readTombstones,
  reportArchiveProgress,
  requestArchive,
  setArchiveFailure,
  setArchiveRequired,
  updatePart,
} from './queries/archive.ts';
import { countArchiveRows, findFirstKey, readArchiveRows } from './queries/archive-rows.ts';
import { beginRestore, claimRestore, endRestore, restoreRows } from './queries/restore-rows.ts';
import { tryLock } from './queries/upkeep.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresArchiveStore(database: Pick<Database, 'pool'>): ArchiveStore {
  const pool = database.pool('upkeep');
  /** The connection that holds the lock while `runExclusively` works. */
  let holder: Client | null = null;
  const confirmExclusion = async (): Promise<void> => {
    try {
      await holder?.query('select');
    } catch (error) {
      const message =
        'The archive process lost its lock, because the connection broke. Another one may work.';
      throw new StoreError('unavailable', message, { cause: error });
    }
  };
  /** For changes that would spoil the work of another process. */
  const exclusively = async <T>(work: () => Promise<T>): Promise<T> => {
    await confirmExclusion();
    return withStoreErrors(work());
  };
  return {
    confirmExclusion,
    readDeploymentId: () => withStoreErrors(readDeploymentId(pool)),
    hasParts: (archive) => withStoreErrors(hasParts(pool, archive)),
    runExclusively: (work) =>
      withStoreErrors(
        inTransaction(pool, async (client) => {
          const isLocked = await tryLock(client, ADVISORY_LOCKS.archive);
          if (isLocked) {
            // Other connections do the work, and this transaction holds nothing but the advisory lock.
            await client.query('set local idle_in_transaction_session_timeout = 0');
            holder = client;
            await work().finally(() => {
              holder = null;
            });
          }
          return isLocked;
        }),
      ),
    listRequested: () => withStoreErrors(listRequested(pool)),
    listParts: (filter) => withStoreErrors(listParts(pool, filter)),
    findFirstKey: (kind, from, to) => withStoreErrors(findFirstKey(pool, kind, from, to)),
    readRows: (kind, range, maxRows, maxBytes) =>
      withStoreErrors(readArchiveRows(pool, kind, range, maxRows, maxBytes)),
    countRows: (kind, from, to) => withStoreErrors(countArchiveRows(pool, kind, from, to)),
    readTime: () => withStoreErrors(readTime(pool)),
    recordPart: (part, startedAt) =>
      exclusively(() => inTransaction(pool, (client) => insertPart(client, part, startedAt))),
    forgetParts: (partition, days) => exclusively(() => forgetParts(pool, partition, days)),
    markVerified: (partition, rows) => exclusively(() => markVerified(pool, partition, rows)),
    openTask: (partition, total) =>
      withStoreErrors(openArchiveTask(pool, partition, { total, nowMs: Date.now() })),
    reportProgress: (task, progress) => withStoreErrors(reportArchiveProgress(pool, task, progress)),
    closeTask: (task, error) => withStoreErrors(closeArchiveTask(pool, task, error)),
    setFailure: (failure) => withStoreErrors(setArchiveFailure(pool, failure)),
    listStaleParts: () => withStoreErrors(listStaleParts(pool)),
    readTombstones: (part) => withStoreErrors(readTombstones(pool, part)),
    replacePart: (part) => exclusively(() => updatePart(pool, part)),
    clearStale: (part) => exclusively(() => clearStale(pool, part)),
    claimRestore: (runner, silentMs) => withStoreErrors(claimRestore(pool, runner, silentMs)),
    beginRestore: (task, keepMs, total) =>
      withStoreErrors(inTransaction(pool, (client) => beginRestore(client, task, { keepMs, total }))),
    restoreRows: (task, kind, rows) =>
      withStoreErrors(inTransaction(pool, (client) => restoreRows(client, task, kind, rows))),
    endRestore: (task, error) =>
      withStoreErrors(inTransaction(pool, (client) => endRestore(client, task, error))),
  };
}

export function createPostgresArchiveRequests(database: Pick<Database, 'pool'>): ArchiveRequests {
  const pool = database.pool('upkeep');
  return {
    requireArchive: () => withStoreErrors(setArchiveRequired(pool, true)),
    mayDrop: async (partition) =>
      !(await withStoreErrors(readArchiveStatus(pool))).isRequired ||
      withStoreErrors(requestArchive(pool, partition)),
    request: async (partition) => {
      await withStoreErrors(setArchiveRequired(pool, true));
      return withStoreErrors(requestArchive(pool, partition));
    },
    hasWork: () => withStoreErrors(hasArchiveWork(pool)),
  };
}
