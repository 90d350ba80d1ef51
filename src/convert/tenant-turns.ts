/** A bounded queue in which tenants take turns, so that one with many conversions delays the others by one at most. */
export interface TenantTurnsOptions {
  readonly maxItems: number;
  readonly maxItemsPerTenant: number;
}

export class TenantTurns<Item extends { readonly tenant: string }> {
  readonly #options: TenantTurnsOptions;
  /** In the order of their turns. */
  readonly #queues = new Map<string, Item[]>();
  #size = 0;

  constructor(options: TenantTurnsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns false if the queue is full, or the tenant's part of it. */
  add(item: Item): boolean {
    const queue = this.#queues.get(item.tenant);
    const { maxItems, maxItemsPerTenant } = this.#options;
    if (this.#size >= maxItems || (queue?.length ?? 0) >= maxItemsPerTenant) return false;
    if (queue === undefined) this.#queues.set(item.tenant, [item]);
    else queue.push(item);
    this.#size += 1;
    return true;
  }

  /** Removes and returns the next item of a tenant for which `mayTake` returns true. Null: there is none. */
  take(mayTake: (tenant: string) => boolean): Item | null {
    for (const [tenant, queue] of this.#queues) {
      if (!mayTake(tenant)) continue;
      const item = queue.shift()!;
      this.#queues.delete(tenant);
      if (queue.length > 0) this.#queues.set(tenant, queue);
      this.#size -= 1;
      return item;
    }
    return null;
  }

  /** Removes and returns all items. */
  clear(): Item[] {
    const items = [...this.#queues.values()].flat();
    this.#queues.clear();
    this.#size = 0;
    return items;
  }
}
