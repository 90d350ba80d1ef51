import type { ArchiveRequests, ArchiveStore } from '../ports/archive-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Client, type Database, inTransaction } from './database.ts';
import { mergeAndApply } from './queries/apply-tombstones.ts';
import {
  clearStale,
  closeArchiveTask,
  forgetParts,
  hasArchiveWork,
  hasParts,
  insertPart,
  isArchiveBehind,
  listParts,
  listRequested,
  listStaleParts,
  markVerified,
  openArchiveTask,
  readArchiveStatus,
  readDeploymentId,
  reportArchiveProgress,
  requestArchive,
  setArchiveFailure,
  setArchiveRequired,
  updatePart,
} from './queries/archive.ts';
import { countArchiveRows, estimateRows, findFirstKey, readArchiveRows } from './queries/archive-rows.ts';
import { insertBatchTombstones } from './queries/expunge-batches.ts';
import { beginRestore, claimRestore, endRestore, restoreRows } from './queries/restore-rows.ts';
import {
  listChangedDays,
  listTombstones,
  readLastTombstone,
  readTombstoneCopy,
  readTombstones,
  setTombstoneCopy,
} from './queries/tombstones.ts';
import { runWithLock } from './run-with-lock.ts';
import { withStoreErrors } from './store-error.ts';

/**
 * PostgreSQL takes the lock from a process that has been silent for this long. The archive process has a low priority and
 * writes a row group in one step, so on a busy machine it can be silent for many seconds. A long timeout does no harm: no
 * other work waits for this lock.
 */
const MAX_SILENCE_MS = 120_000;

export function createPostgresArchiveStore(database: Pick<Database, 'pool'>): ArchiveStore {
  const pool = database.pool('upkeep');
  /** The connection that holds the lock while `runExclusively` works. */
  let holder: Client | null = null;
  const confirmExclusion = async (): Promise<void> => {
    try {
      await holder?.query('select');
    } catch (error) {
      const message =
        'The archive process lost its lock, because the connection broke. Another process may work on the archive now.';
      throw new StoreError('unavailable', message, { cause: error });
    }
  };
  /** Runs `work` if this process still holds the lock. Throws otherwise: another process may be changing the same parts. */
  const withExclusion = async <T>(work: () => Promise<T>): Promise<T> => {
    await confirmExclusion();
    return withStoreErrors(work());
  };
  return {
    confirmExclusion,
    readDeploymentId: () => withStoreErrors(readDeploymentId(pool)),
    hasParts: (archive) => withStoreErrors(hasParts(pool, archive)),
    runExclusively: (work) =>
      withStoreErrors(
        runWithLock(
          pool,
          ADVISORY_LOCKS.archive,
          async (client) => {
            holder = client;
            await work().finally(() => {
              holder = null;
            });
          },
          MAX_SILENCE_MS,
        ),
      ),
    listRequested: () => withStoreErrors(listRequested(pool)),
    isBehind: (days) => withStoreErrors(isArchiveBehind(pool, days)),
    listParts: (filter) => withStoreErrors(listParts(pool, filter)),
    findFirstKey: (kind, from, to) => withStoreErrors(findFirstKey(pool, kind, from, to)),
    readRows: (kind, range, maxRows, maxBytes) =>
      withStoreErrors(readArchiveRows(pool, kind, range, maxRows, maxBytes)),
    countRows: (kind, from, to, rest) => withStoreErrors(countArchiveRows(pool, kind, { from, to }, rest)),
    estimateRows: (partition, rest) => withStoreErrors(estimateRows(pool, partition, rest)),
    readLastTombstone: () => withStoreErrors(inTransaction(pool, readLastTombstone)),
    recordPart: (part, lastTombstone) =>
      withExclusion(() => inTransaction(pool, (client) => insertPart(client, part, lastTombstone))),
    forgetParts: (partition, days) => withExclusion(() => forgetParts(pool, partition, days)),
    markVerified: (partition, rows) => withExclusion(() => markVerified(pool, partition, rows)),
    openTask: (partition, total) =>
      withStoreErrors(openArchiveTask(pool, partition, { total, nowMs: Date.now() })),
    reportProgress: (task, progress) => withStoreErrors(reportArchiveProgress(pool, task, progress)),
    closeTask: (task, error) => withStoreErrors(closeArchiveTask(pool, task, error)),
    setFailure: (failure) => withStoreErrors(setArchiveFailure(pool, failure)),
    listStaleParts: () => withStoreErrors(listStaleParts(pool)),
    readTombstones: (part) => withStoreErrors(readTombstones(pool, part)),
    listTombstones: (day) => withStoreErrors(listTombstones(pool, day)),
    listChangedDays: (after) => withStoreErrors(listChangedDays(pool, after)),
    mergeTombstones: (tombstones) => withStoreErrors(mergeAndApply(pool, tombstones)),
    readTombstoneCopy: () => withStoreErrors(readTombstoneCopy(pool)),
    setTombstoneCopy: (copy) => withExclusion(() => setTombstoneCopy(pool, copy)),
    addBatchTombstones: (ids) => withStoreErrors(insertBatchTombstones(pool, ids)),
    replacePart: (part) => withExclusion(() => updatePart(pool, part)),
    clearStale: (part) => withExclusion(() => clearStale(pool, part)),
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
