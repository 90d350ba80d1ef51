/**
 * Stores the events of tenants that would fill too much of a shared commit, by many events, by large payloads or by a large
 * fan-out. It runs beside the shared batches, so that other tenants wait for short commits only. Tenants take turns; a turn
 * is one commit of bounded size. The events of a tenant keep their order.
 *
 * While other tenants publish, the path pauses after each commit (commit-pace.ts). Tenants with large fan-outs have pauses of their
 * own, so that the others here need not wait for them.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { CommitPace } from './commit-pace.ts';
import type { PendingEvent } from './pending-event.ts';

type CommitTurns = Pick<CommitPace, 'tryBegin' | 'waitUntilFree'>;

export interface BulkPathOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly pace: CommitTurns;
  /** For tenants with large fan-outs. */
  readonly widePace: CommitTurns;
  /** Limits of a commit. */
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly bytesOf: (item: PendingEvent) => number;
  /** Writes the first events of the batch in one commit, and counts their deliveries. Returns the others. Does not throw. */
  readonly writeFirst: (
    batch: readonly PendingEvent[],
    onAppended: (deliveries: number) => void,
  ) => Promise<readonly PendingEvent[]>;
  /** Called after each commit: number of events, how long the first of them waited, how long writing took. */
  readonly onWritten?: ((events: number, waitedMs: number, tookMs: number) => void) | undefined;
}

/** Limits of a tenant in a shared batch. A tenant above them is written on the bulk path. */
const MAX_SHARED_EVENTS = 100;
const MAX_SHARED_BYTES = 512 * 1024;
/** A commit has a large fan-out if its events have more deliveries than this, on average. */
const MAX_USUAL_FAN_OUT = 10;

export class BulkPath {
  readonly #options: BulkPathOptions;
  /** By tenant, in the order of their turns. A tenant stays here while its events are being written. */
  readonly #queues = new Map<string, PendingEvent[]>();
  /** Those of these tenants whose events have large fan-outs. */
  readonly #wide = new Set<string>();
  #added = Promise.withResolvers<void>();
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

  /** `isWide`: their fan-outs are known to be large. */
  add(items: readonly PendingEvent[], isWide = false): void {
    for (const item of items) {
      if (isWide) this.#wide.add(item.event.tenant);
      const queue = this.#queues.get(item.event.tenant);
      if (queue === undefined) this.#queues.set(item.event.tenant, [item]);
      else queue.push(item);
      this.#items += 1;
      this.#bytes += this.#options.bytesOf(item);
    }
    this.#added.resolve();
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
    const { pace, widePace } = this.#options;
    while (this.#queues.size > 0) {
      this.#added = Promise.withResolvers();
      const tenants = [...this.#queues.keys()];
      const nextTurns: [CommitTurns, string | undefined][] = [
        [pace, tenants.find((tenant) => !this.#wide.has(tenant))],
        [widePace, tenants.find((tenant) => this.#wide.has(tenant))],
      ];
      const waits = [this.#added.promise];
      let hasWritten = false;
      for (const [turns, tenant] of nextTurns) {
        if (tenant === undefined) continue;
        const endTurn = turns.tryBegin();
        if (endTurn === null) waits.push(turns.waitUntilFree());
        else {
          await this.#writeNext(tenant);
          endTurn();
          hasWritten = true;
        }
      }
      if (!hasWritten) await Promise.race(waits);
    }
    this.#running = null;
  }

  /** Writes the first events of the tenant in one commit. */
  async #writeNext(tenant: string): Promise<void> {
    const { clock, bytesOf, writeFirst, onWritten } = this.#options;
    const queue = this.#queues.get(tenant)!;
    const batch = this.#takeBatch(queue);
    const startedAt = clock.monotonic();
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
    if (queue.length > 0 && deliveries > written * MAX_USUAL_FAN_OUT) this.#wide.add(tenant);
    else this.#wide.delete(tenant);
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
 * Adds the events of tenants with more than `maxRows` deliveries among the first events of the batch, which are matched. Returns the
 * others. Null: there is no such tenant.
 */
export function divertLargeFanOuts(
  bulk: Pick<BulkPath, 'add'> | undefined,
  batch: readonly PendingEvent[],
  matched: readonly (readonly Endpoint[])[],
  maxRows: number,
): readonly PendingEvent[] | null {
  if (bulk === undefined) return null;
  const rows = new Map<string, number>();
  for (const [index, endpoints] of matched.entries()) {
    const { tenant } = batch[index]!.event;
    rows.set(tenant, (rows.get(tenant) ?? 0) + endpoints.length);
  }
  const isLarge = ({ event }: PendingEvent): boolean => (rows.get(event.tenant) ?? 0) > maxRows;
  const large = batch.filter(isLarge);
  if (large.length === 0) return null;
  bulk.add(large, true);
  return batch.filter((item) => !isLarge(item));
}
