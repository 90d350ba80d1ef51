/**
 * Stores the events of tenants that would fill too much of a shared commit, by many events, by large payloads or by a large
 * fan-out. It runs beside the shared batches, so that other tenants wait for short commits only. Tenants take turns; a turn
 * is one commit of bounded size. The events of a tenant keep their order.
 *
 * After a commit with a large fan-out the path pauses for as long as the commit took, if other tenants publish meanwhile: it
 * leaves at least half of the time to them, as the fan-out writer does.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { PendingEvent } from './pending-event.ts';

export interface BulkPathOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Limits of a commit. */
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly bytesOf: (item: PendingEvent) => number;
  /** Writes the first events of the batch in one commit, and counts their deliveries. Returns the others. Does not throw. */
  readonly writeFirst: (
    batch: readonly PendingEvent[],
    onAppended: (deliveries: number) => void,
  ) => Promise<readonly PendingEvent[]>;
  /** How many shared batches were written so far. */
  readonly countSharedBatches: () => number;
  /** Called after each commit: number of events, how long the first of them waited, how long writing took. */
  readonly onWritten?: ((events: number, waitedMs: number, tookMs: number) => void) | undefined;
}

/** Limits of a tenant in a shared batch. A tenant above them is written on the bulk path. */
const MAX_SHARED_EVENTS = 100;
const MAX_SHARED_BYTES = 512 * 1024;
/** A commit has a large fan-out if its events have more deliveries than this, on average. */
const MAX_USUAL_FAN_OUT = 10;
/** The longest pause after a commit. */
const MAX_PAUSE_MS = 1_000;

export class BulkPath {
  readonly #options: BulkPathOptions;
  /** By tenant, in the order of their turns. A tenant stays here while its events are being written. */
  readonly #queues = new Map<string, PendingEvent[]>();
  #items = 0;
  #bytes = 0;
  #running: Promise<void> | null = null;

  constructor(options: BulkPathOptions) {
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
    this.#running ??= this.#run();
  }

  /** Adds the events of tenants that have too many in this batch, or already wait here. Returns the others. */
  divert(batch: PendingEvent[]): PendingEvent[] {
    const tenants = this.#findBulkTenants(batch);
    if (tenants.size === 0) return batch;
    this.add(batch.filter(({ event }) => tenants.has(event.tenant)));
    return batch.filter(({ event }) => !tenants.has(event.tenant));
  }

  #findBulkTenants(batch: readonly PendingEvent[]): ReadonlySet<string> {
    const found = new Set<string>();
    const totals = new Map<string, { events: number; bytes: number }>();
    for (const item of batch) {
      const { tenant } = item.event;
      const total = totals.get(tenant) ?? { events: 0, bytes: 0 };
      total.events += 1;
      total.bytes += this.#options.bytesOf(item);
      totals.set(tenant, total);
      if (total.events > MAX_SHARED_EVENTS || total.bytes > MAX_SHARED_BYTES || this.has(tenant))
        found.add(tenant);
    }
    return found;
  }

  async waitUntilIdle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, bytesOf, writeFirst, onWritten, countSharedBatches } = this.#options;
    for (;;) {
      const [next] = this.#queues;
      if (next === undefined) {
        this.#running = null;
        return;
      }
      const [tenant, queue] = next;
      const batch = this.#takeBatch(queue);
      const startedAt = clock.monotonic();
      const sharedBefore = countSharedBatches();
      let deliveries = 0;
      const rest = await writeFirst(batch, (appended) => {
        deliveries += appended;
      });
      const written = batch.length - rest.length;
      const tookMs = clock.monotonic() - startedAt;
      onWritten?.(written, startedAt - batch[0]!.receivedAt, tookMs);
      this.#items -= written;
      for (const item of batch) this.#bytes -= bytesOf(item);
      for (const item of rest) this.#bytes += bytesOf(item);
      queue.unshift(...rest);
      this.#queues.delete(tenant);
      if (queue.length > 0) this.#queues.set(tenant, queue);
      const hasLargeFanOut = deliveries > written * MAX_USUAL_FAN_OUT;
      if (hasLargeFanOut && countSharedBatches() > sharedBefore)
        await this.#pause(Math.min(tookMs, MAX_PAUSE_MS));
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }

  #takeBatch(queue: PendingEvent[]): PendingEvent[] {
    const { maxItems, maxBytes, bytesOf } = this.#options;
    let bytes = 0;
    const end = queue.findIndex((item, index) => {
      bytes += bytesOf(item);
      // Take the first event even if it is too large, or it would wait forever.
      return index === maxItems || (index > 0 && bytes > maxBytes);
    });
    return queue.splice(0, end === -1 ? queue.length : end);
  }
}

/** Adds the events of tenants that are on the bulk path already. Returns the others. */
export function divertWaiting(
  bulk: Pick<BulkPath, 'has' | 'add'> | undefined,
  batch: readonly PendingEvent[],
): readonly PendingEvent[] {
  if (bulk === undefined || !batch.some(({ event }) => bulk.has(event.tenant))) return batch;
  bulk.add(batch.filter(({ event }) => bulk.has(event.tenant)));
  return batch.filter(({ event }) => !bulk.has(event.tenant));
}

/**
 * Returns the tenants that fill more than a quarter of a commit, if the batch needs several commits. Null: one commit
 * is enough, or there is no such tenant.
 */
export function findLargeFanOuts(
  part: readonly PendingEvent[],
  matched: readonly (readonly Endpoint[])[],
  batchLength: number,
  deliveriesPerCommit: number,
): ReadonlySet<string> | null {
  const hasLargeEvent = part.length === 1 && matched[0]!.length > deliveriesPerCommit;
  const fitsOneCommit = part.length === batchLength && !hasLargeEvent;
  if (fitsOneCommit) return null;
  const rows = new Map<string, number>();
  for (const [index, { event }] of part.entries())
    rows.set(event.tenant, (rows.get(event.tenant) ?? 0) + matched[index]!.length);
  const large = new Set<string>();
  for (const [tenant, count] of rows) if (count > deliveriesPerCommit / 4) large.add(tenant);
  return large.size === 0 ? null : large;
}
