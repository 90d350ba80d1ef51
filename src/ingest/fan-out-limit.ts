/**
 * Bounds how many deliveries of large fan-outs a tenant may have that are accepted and not written yet. Without it, one tenant could
 * fill the table of slices, and everything it publishes would be late by hours.
 *
 *   fan-out of one commit                       not limited
 *   large fan-out, tenant below the limit       accepted, whatever its size
 *   …, at the limit: request                    429. Nothing was stored, other events of the tenant are accepted
 *   …, at the limit: repeated request           its first answer, by its idempotency key
 *   …, at the limit: row of the outbox          it stays, with the later rows of the tenant, and is read again (drainer.ts)
 *   …, at the limit: Kafka record that waited   it keeps waiting, with the later records of the tenant (waiting-records.ts)
 *   …, at the limit: row of a relay, or         accepted: it would hold up the other tenants of its source
 *      Kafka record that was just read
 *
 * Processes count at the same time, so a tenant may exceed the limit by one event for each of them.
 */
import type { EventStore } from '../ports/event-store.ts';
import type { FanOutStore } from '../ports/fan-out-store.ts';
import type { PendingEvent } from './pending-event.ts';
import { tooManyUnwritten } from './store-problems.ts';

export interface FanOutLimitOptions {
  readonly fanOuts: Pick<FanOutStore, 'countSlices'>;
  readonly eventStore: Pick<EventStore, 'findKeyHolders'>;
  readonly deliveriesPerCommit: number;
  /** Deliveries per slice. */
  readonly sliceRows: number;
  readonly maxUnwritten: number;
}

export class FanOutLimit {
  readonly #options: FanOutLimitOptions;

  constructor(options: FanOutLimitOptions) {
    this.#options = options;
  }

  /**
   * Rejects the first event if its tenant has reached the limit, and returns the events that are left. Null: it may be written.
   * `deliveries`: how many it makes.
   */
  async refuseFirst(
    batch: readonly PendingEvent[],
    deliveries: number,
    mayBeStored: boolean,
  ): Promise<readonly PendingEvent[] | null> {
    const { fanOuts, eventStore, deliveriesPerCommit, sliceRows, maxUnwritten } = this.#options;
    if (deliveries <= deliveriesPerCommit) return null;
    const first = batch[0]!;
    const { tenant, idempotencyKey: key } = first.event;
    // True also for a Kafka record that waited.
    const isOutboxRow = (first.committed?.outboxSeq ?? null) !== null;
    const holdsUpOthers = first.committed !== null && !isOutboxRow;
    // A request that an earlier try may have stored must not be refused.
    if (holdsUpOthers || (mayBeStored && !isOutboxRow)) return null;
    const maxSlices = Math.ceil(maxUnwritten / sliceRows);
    if ((await fanOuts.countSlices(tenant, maxSlices)) < maxSlices) return null;
    if (!isOutboxRow && key !== null && (await eventStore.findKeyHolders([{ tenant, key }])).size > 0)
      return null;
    const problem = tooManyUnwritten(tenant, maxUnwritten);
    // Rows of the outbox keep their order.
    const isRefused = (item: PendingEvent): boolean =>
      item === first || (isOutboxRow && item.event.tenant === tenant);
    for (const item of batch) if (isRefused(item)) item.reject(problem);
    return batch.filter((item) => !isRefused(item));
  }
}
