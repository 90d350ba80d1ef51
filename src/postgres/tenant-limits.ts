import type { TenantLimits } from '../ports/rate-limits.ts';
import type { Database } from './database.ts';
import { loadIngestLimits } from './queries/tenants.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresTenantLimits(database: Pick<Database, 'pool'>): TenantLimits {
  return { load: () => withStoreErrors(loadIngestLimits(database.pool('ingest'))) };
}
