import type { ConversionStore } from '../ports/conversion-store.ts';
import type { Database } from './database.ts';
import { findConversions, findSentConversions, keepConversions } from './queries/conversions.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresConversionStore(database: Pick<Database, 'pool'>): ConversionStore {
  const pool = database.pool('dispatch');
  return {
    keep: (conversions) => withStoreErrors(keepConversions(pool, conversions)),
    find: async (key) => (await withStoreErrors(findConversions(pool, [key])))[0]?.data ?? null,
    findSent: (queries) => withStoreErrors(findSentConversions(pool, queries)),
  };
}
