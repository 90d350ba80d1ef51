/**
 * Stores the events of tenants whose fan-out is too large to share a commit with others. It runs beside the shared
 * batches. Tenants take turns; a turn is one commit of bounded size. The events of a tenant keep their order.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { PendingEvent } from './pending-event.ts';

export interface WidePathOptions {
  readonly maxItems: number;
  readonly bytesOf: (item: PendingEvent) => number;
  /** Writes the first events of the batch in one commit. Returns the others. Does not throw. */
  readonly writeFirst: (batch: readonly PendingEvent[]) => Promise<readonly PendingEvent[]>;
}

export class WidePath {
  readonly #options: WidePathOptions;
  /** By tenant, in the order of their turns. A tenant stays here while its events are being written. */
  readonly #queues = new Map<string, PendingEvent[]>();
  #items = 0;
  #bytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: WidePathOptions) {
    this.#options = options;
  }

  /** Events that are not answered yet. */
  get waitingItems(): number {
    return this.#items;
  }

  get waitingBytes(): number {
    return this.#bytes;
  }

  /** True while events of the tenant wait here: its next events must queue behind them. */
  has(tenant: string): boolean {
    return this.#queues.has(tenant);
  }

  add(items: readonly PendingEvent[]): void {
    for (const item of items) {
      const queue = this.#queues.get(item.event.tenant);
      if (queue === undefined) this.#queues.set(item.event.tenant, [item]);
      else queue.push(item);
      this.#items += 1;
      this.#bytes += this.#options.bytesOf(item);
    }
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  async waitUntilIdle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    const { maxItems, bytesOf, writeFirst } = this.#options;
    for (;;) {
      const [next] = this.#queues;
      if (next === undefined) return;
      const [tenant, queue] = next;
      const batch = queue.splice(0, maxItems);
      const rest = await writeFirst(batch);
      this.#items -= batch.length - rest.length;
      for (const item of batch) this.#bytes -= bytesOf(item);
      for (const item of rest) this.#bytes += bytesOf(item);
      queue.unshift(...rest);
      this.#queues.delete(tenant);
      if (queue.length > 0) this.#queues.set(tenant, queue);
    }
  }
}

/** Adds the events of tenants that are on the wide path already. Returns the others. */
export function divertTo(
  wide: Pick<WidePath, 'has' | 'add'> | undefined,
  batch: readonly PendingEvent[],
): readonly PendingEvent[] {
  if (wide === undefined || !batch.some(({ event }) => wide.has(event.tenant))) return batch;
  wide.add(batch.filter(({ event }) => wide.has(event.tenant)));
  return batch.filter(({ event }) => !wide.has(event.tenant));
}

/**
 * Returns the tenants that fill more than a quarter of a commit, if the batch needs several commits. Null: one commit
 * is enough, or there is no such tenant.
 */
export function wideTenants(
  part: readonly PendingEvent[],
  matched: readonly (readonly Endpoint[])[],
  batchLength: number,
  deliveriesPerCommit: number,
): ReadonlySet<string> | null {
  if (part.length === batchLength && (part.length > 1 || matched[0]!.length <= deliveriesPerCommit))
    return null;
  const rows = new Map<string, number>();
  for (const [index, { event }] of part.entries())
    rows.set(event.tenant, (rows.get(event.tenant) ?? 0) + matched[index]!.length);
  const wide = new Set<string>();
  for (const [tenant, count] of rows) if (count > deliveriesPerCommit / 4) wide.add(tenant);
  return wide.size === 0 ? null : wide;
}
