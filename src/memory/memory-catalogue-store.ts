import type { CatalogueStore } from '../ports/catalogue-store.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryCatalogueStore(store: MemoryStore): CatalogueStore {
  return {
    async load() {
      const types = [...store.eventTypes.values()].map(({ schema, schemas, ...type }) => type);
      return { types, tenantModes: new Map(store.tenantModes) };
    },
    async loadSchema(eventType, version) {
      const type = store.eventTypes.get(eventType);
      return (version === null ? type?.schema : type?.schemas.get(version)) ?? null;
    },
    async recordFailures(failures) {
      for (const failure of failures) {
        const isExpunged = failure.eventId !== null && store.expungedEvents.has(failure.eventId);
        if (!isExpunged && !store.schemaFailures.has(failure.id))
          store.schemaFailures.set(failure.id, failure);
      }
    },
  };
}
