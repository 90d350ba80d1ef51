import type { TenantLimits } from '../ports/rate-limits.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryTenantLimits(store: MemoryStore): TenantLimits {
  return { load: async () => new Map(store.tenantLimits) };
}
