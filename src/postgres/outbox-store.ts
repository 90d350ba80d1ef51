import type { OutboxStore } from '../ports/outbox-store.ts';
import type { Database } from './database.ts';
import { outboxLag, readOutbox, rejectOutboxRows } from './queries/outbox.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresOutboxStore(database: Pick<Database, 'pool'>): OutboxStore {
  const outbox = database.pool('outbox');
  return {
    read: (read) => withStoreErrors(readOutbox(outbox, read)),
    reject: (rows) => withStoreErrors(rejectOutboxRows(outbox, rows)),
    readLag: () => withStoreErrors(outboxLag(database.pool('api'))),
  };
}
