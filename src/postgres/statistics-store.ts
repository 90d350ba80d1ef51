import type { StatisticsStore } from '../ports/statistics-store.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Database, inTransaction } from './database.ts';
import { addSkipped } from './queries/skipped-deliveries.ts';
import { addEndpointStats, addEventStats, findCountedTypes } from './queries/stats.ts';
import { hasJournal, insertUnreadable, takeJournal } from './queries/stats-journal.ts';
import { tryLock } from './queries/upkeep.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresStatisticsStore(database: Pick<Database, 'pool'>): StatisticsStore {
  const pool = database.pool('api');
  return {
    runRound: async (work) => {
      if (!(await withStoreErrors(hasJournal(pool)))) return null;
      return withStoreErrors(
        inTransaction(pool, async (client) => {
          if (!(await tryLock(client, ADVISORY_LOCKS.statistics))) return null;
          return work({
            takeRows: (maxRows) => takeJournal(client, maxRows),
            setAside: (rows) => insertUnreadable(client, rows),
            findCountedTypes: (hours) => findCountedTypes(client, hours),
            addEndpointTotals: (buckets) => addEndpointStats(client, buckets),
            addEventTotals: (buckets) => addEventStats(client, buckets),
            addSkipped: (counts) => addSkipped(client, counts),
          });
        }),
      );
    },
  };
}
