import type { EventStore } from '../ports/event-store.ts';

const MAX_TENANTS = 100_000;

/** Caches which tenants exist, so that only a tenant's first event costs a statement to create it. */
export class KnownTenants {
  readonly #eventStore: Pick<EventStore, 'ensureTenants'>;
  readonly #known = new Set<string>();
  #generation = 0;

  constructor(eventStore: Pick<EventStore, 'ensureTenants'>) {
    this.#eventStore = eventStore;
  }

  /** Returns null if all tenants of the batch are known, which is the usual case. */
  unknownOf(batch: readonly { readonly event: { readonly tenant: string } }[]): Set<string> | null {
    let unknown: Set<string> | null = null;
    for (const { event } of batch) {
      if (this.#known.has(event.tenant)) continue;
      unknown ??= new Set();
      unknown.add(event.tenant);
    }
    return unknown;
  }

  /** Creates the tenants that do not exist yet. */
  async add(tenants: ReadonlySet<string>): Promise<void> {
    const generation = this.#generation;
    await this.#eventStore.ensureTenants([...tenants]);
    // A tenant may have been deleted meanwhile.
    if (generation !== this.#generation) return;
    if (this.#known.size + tenants.size > MAX_TENANTS) this.#known.clear();
    for (const tenant of tenants) this.#known.add(tenant);
  }

  /** Empties the cache, because a tenant was deleted or may have been. */
  clear(): void {
    this.#generation += 1;
    this.#known.clear();
  }
}
