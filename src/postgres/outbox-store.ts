import type { OutboxRead, OutboxRow, OutboxStore } from '../ports/outbox-store.ts';
import type { Database } from './database.ts';
import { hasOutboxRows, readOutbox, readOutboxLag, rejectOutboxRows } from './queries/outbox.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresOutboxStore(database: Pick<Database, 'pool'>): OutboxStore {
  const outbox = database.pool('outbox');
  let wasEmpty = false;
  // In most installations the outbox is empty for a long time, and the drainer polls it ten times a second.
  const readUnlessEmpty = async (read: OutboxRead): Promise<OutboxRow[]> => {
    if (wasEmpty && !(await hasOutboxRows(outbox, read.afterSeq))) return [];
    const rows = await readOutbox(outbox, read);
    wasEmpty = rows.length === 0;
    return rows;
  };
  return {
    read: (read) => withStoreErrors(readUnlessEmpty(read)),
    reject: (rows) => withStoreErrors(rejectOutboxRows(outbox, rows)),
    readLag: () => withStoreErrors(readOutboxLag(database.pool('api'))),
  };
}
