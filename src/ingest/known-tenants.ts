import type { Pool } from '../postgres/database.ts';
import { ensureTenants } from '../postgres/queries/tenants.ts';

const REMEMBER_AT_MOST = 100_000;

/** Tenants exist from their first event on. Those that this process has met are remembered: no statement for them. */
export class KnownTenants {
  readonly #pool: Pool;
  readonly #known = new Set<string>();
  #generation = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Null, almost always: all are known. */
  unknownOf(batch: readonly { readonly event: { readonly tenant: string } }[]): Set<string> | null {
    let unknown: Set<string> | null = null;
    for (const { event } of batch) {
      if (this.#known.has(event.tenant)) continue;
      unknown ??= new Set();
      unknown.add(event.tenant);
    }
    return unknown;
  }

  async add(tenants: ReadonlySet<string>): Promise<void> {
    const generation = this.#generation;
    await ensureTenants(this.#pool, [...tenants]);
    // One may have been deleted since.
    if (generation !== this.#generation) return;
    if (this.#known.size + tenants.size > REMEMBER_AT_MOST) this.#known.clear();
    for (const tenant of tenants) this.#known.add(tenant);
  }

  /** One was deleted, or it is not known whether: each is looked for again when it publishes. */
  forget(): void {
    this.#generation += 1;
    this.#known.clear();
  }
}
