import type { OperationalStore } from '../ports/operational-store.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Database, inTransaction } from './database.ts';
import { addNotices, takeDigests } from './queries/notice-digests.ts';
import {
  clearState,
  findWork,
  hasState,
  loadNotedEndpoints,
  publishOperational,
  readEndpointVersion,
  setStates,
  takeNotes,
} from './queries/operational-events.ts';
import { countDeadLettersUpTo, findOldestWaiting, readArchiveFailure } from './queries/operational-levels.ts';
import { takeSunsets } from './queries/sunsets.ts';
import { tryLock } from './queries/upkeep.ts';
import { withStoreErrors } from './store-error.ts';

/** Thrown inside the transaction to roll it back. */
class RollbackError extends Error {}

export function createPostgresOperationalStore(database: Pick<Database, 'pool'>): OperationalStore {
  const pool = database.pool('api');
  return {
    findWork: (noticeWindowMs) => withStoreErrors(findWork(pool, noticeWindowMs)),
    async runRound(work) {
      const transaction = inTransaction(pool, async (client) => {
        if (!(await tryLock(client, ADVISORY_LOCKS.operationalEvents))) return true;
        const isCommitted = await work({
          takeNotes: (deadWindowMs, maxNotes) => takeNotes(client, deadWindowMs, maxNotes),
          readEndpointVersion: () => readEndpointVersion(client),
          loadEndpoints: (ids) => loadNotedEndpoints(client, ids),
          hasState: (kind, subject) => hasState(client, kind, subject),
          setStates: (kind, subjects) => setStates(client, kind, subjects),
          clearState: (kind, subject) => clearState(client, kind, subject),
          countDeadLetters: (max) => countDeadLettersUpTo(client, max),
          findOldestWaiting: () => findOldestWaiting(client),
          readArchiveFailure: () => readArchiveFailure(client),
          addNotices: (notices) => addNotices(client, notices),
          takeDigests: (windowMs) => takeDigests(client, windowMs),
          takeSunsets: (kinds) => takeSunsets(client, kinds),
          publish: (events) => publishOperational(client, events),
        });
        if (!isCommitted) throw new RollbackError();
        return true;
      }).catch((error: unknown) => {
        if (error instanceof RollbackError) return false;
        throw error;
      });
      return withStoreErrors(transaction);
    },
  };
}
