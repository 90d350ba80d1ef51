import type { CatalogueStore } from '../ports/catalogue-store.ts';
import type { Database } from './database.ts';
import { loadCatalogue, loadSchema } from './queries/event-type-versions.ts';
import { insertSchemaFailures } from './queries/schema-failures.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresCatalogueStore(database: Pick<Database, 'pool'>): CatalogueStore {
  return {
    load: () => withStoreErrors(loadCatalogue(database.pool('lookup'))),
    loadSchema: (eventType, version) =>
      withStoreErrors(loadSchema(database.pool('lookup'), eventType, version)),
    recordFailures: (failures) => withStoreErrors(insertSchemaFailures(database.pool('api'), failures)),
  };
}
