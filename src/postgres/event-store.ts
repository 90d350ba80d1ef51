import type { EventLookup, EventStore } from '../ports/event-store.ts';
import type { Database } from './database.ts';
import { acceptEvents, databaseNow, findKeyHolders } from './queries/accept-events.ts';
import { hasDebounceKey, storeDebounceKeys } from './queries/debounce.ts';
import { loadEvents } from './queries/load-events.ts';
import { ensureTenants } from './queries/tenants.ts';
import { withStoreErrors } from './store-error.ts';

export interface PostgresEventStoreOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly ensurePartitions: EventStore['ensurePartitions'];
}

/** Batches of the outbox and of Kafka have a connection of their own, so that a backlog there does not delay requests. */
export function createPostgresEventStore({
  database,
  ensurePartitions,
}: PostgresEventStoreOptions): EventStore {
  const ingest = database.pool('ingest');
  return {
    append: (events, options) => {
      const isRequest = options.outboxSeqs === null && options.partition === undefined;
      const pool = isRequest ? ingest : database.pool('outbox');
      if (!events.some(({ deliveries }) => deliveries.some(hasDebounceKey)))
        return withStoreErrors(acceptEvents(pool, events, options));
      return withStoreErrors(
        storeDebounceKeys(
          pool,
          events.flatMap(({ deliveries }) => deliveries),
        ).then(() => acceptEvents(pool, events, options)),
      );
    },
    findKeyHolders: (keys) => withStoreErrors(findKeyHolders(ingest, keys)),
    ensureTenants: (names) => withStoreErrors(ensureTenants(ingest, names)),
    ensurePartitions: (idTimes) => withStoreErrors(ensurePartitions(idTimes)),
    now: () => withStoreErrors(databaseNow(ingest)),
  };
}

export function createPostgresEventLookup(database: Pick<Database, 'pool'>): EventLookup {
  return { load: (ids) => withStoreErrors(loadEvents(database.pool('dispatch'), ids)) };
}
