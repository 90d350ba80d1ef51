import type { ClosedTenants, KeyClaims } from '../ports/event-log.ts';
import type { Database } from './database.ts';
import { claimKeys } from './queries/claim-keys.ts';
import { listClosedTenants } from './queries/tenants.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresKeyClaims(database: Pick<Database, 'pool'>): KeyClaims {
  return { claim: (claims, options) => withStoreErrors(claimKeys(database.pool('ingest'), claims, options)) };
}

export function createPostgresClosedTenants(database: Pick<Database, 'pool'>): ClosedTenants {
  return { load: () => withStoreErrors(listClosedTenants(database.pool('ingest'))) };
}
