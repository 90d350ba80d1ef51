import type { FanOutStore } from '../ports/fan-out-store.ts';
import type { Database } from './database.ts';
import { countSlices, findNextSlice, writeSlice } from './queries/fan-out-slices.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresFanOutStore(database: Pick<Database, 'pool'>): FanOutStore {
  const pool = database.pool('api');
  return {
    findNext: (afterTenant, maxEndpoints) => withStoreErrors(findNextSlice(pool, afterTenant, maxEndpoints)),
    countSlices: (tenant, max) => withStoreErrors(countSlices(pool, tenant, max)),
    write: (slice, deliveries, endpointVersion) =>
      withStoreErrors(writeSlice(pool, slice, deliveries, endpointVersion)),
  };
}
