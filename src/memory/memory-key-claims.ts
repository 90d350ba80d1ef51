import type { ClaimHolder, ClosedTenants, KeyClaims } from '../ports/event-log.ts';
import { idempotencyKeyName } from '../ports/event-store.ts';
import { isExpired } from './memory-event-store.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryKeyClaims(store: MemoryStore): KeyClaims {
  return {
    async claim(claims, options) {
      const holders = new Map<string, ClaimHolder>();
      const expiresAt = Math.max(store.now(), options.now) + options.idempotencyTtlMs;
      for (const { tenant, key, eventId, fingerprint } of claims) {
        const name = idempotencyKeyName(tenant, key);
        const held = store.idempotencyKeys.get(name);
        if (held === undefined || isExpired(store, held, options))
          store.idempotencyKeys.set(name, { eventId, fingerprint, expiresAt, isClaimed: true });
        holders.set(name, holderOf(store, name));
      }
      return holders;
    },
  };
}

function holderOf({ idempotencyKeys, events }: MemoryStore, name: string): ClaimHolder {
  const { eventId, fingerprint, isClaimed } = idempotencyKeys.get(name)!;
  const { deliveries = 0, type = '', options } = events.get(eventId) ?? {};
  const unmatchedReason = (options?.unmatched_reason as ClaimHolder['unmatchedReason'] | undefined) ?? null;
  return { eventId, fingerprint, isClaimed, deliveries, unmatchedReason, type };
}

/** The store has no tenants whose data is being deleted. */
export function createMemoryClosedTenants(store: MemoryStore): ClosedTenants {
  return { load: async () => ({ tenants: new Set(), readAt: store.now() }) };
}
