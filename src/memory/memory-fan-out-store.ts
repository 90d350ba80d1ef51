import type { FanOutSlice, FanOutStore, SliceDeliveries, SliceResult } from '../ports/fan-out-store.ts';
import { type MemoryStore, toMicroseconds } from './memory-store.ts';
import { newQueueRow } from './queue-table.ts';
import type { StoredSlice } from './rows.ts';

export function createMemoryFanOutStore(store: MemoryStore): FanOutStore {
  return {
    async findNext(afterTenant, maxEndpoints) {
      const waiting = store.unwrittenSlices.sort(byTurn);
      const slice = waiting.find(({ tenant }) => tenant > afterTenant) ?? waiting[0];
      if (slice === undefined) return null;
      const { eventId, tenant, firstOrdinal, wasDisabled, deliverAt } = slice;
      const endpointIds = slice.endpointIds.slice(0, maxEndpoints);
      return { eventId, tenant, firstOrdinal, endpointIds, wasDisabled, deliverAt };
    },
    async countSlices(tenant, max) {
      return Math.min(max, store.unwrittenSlices.filter((slice) => slice.tenant === tenant).length);
    },
    async write(slice, deliveries, endpointVersion) {
      const delayMs = store.commitDelayMs();
      const result = write(store, slice, deliveries, endpointVersion, store.visibleNow() + delayMs);
      if (delayMs > 0) await new Promise<void>((resolve) => store.clock.after(delayMs, resolve));
      return result;
    },
  };
}

const byTurn = (a: StoredSlice, b: StoredSlice): number =>
  compare(a.tenant, b.tenant) || a.seq - b.seq || a.firstOrdinal - b.firstOrdinal;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function write(
  store: MemoryStore,
  { eventId, tenant: tenantOfSlice, firstOrdinal, endpointIds }: FanOutSlice,
  { waiting, skipped }: SliceDeliveries,
  endpointVersion: number,
  visibleAt: number,
): SliceResult {
  const now = store.visibleNow();
  for (const slice of store.fanOutSlices) if (slice.writtenAt <= now) store.fanOutSlices.delete(slice);
  if ([...store.fanOutSlices].some(({ writtenAt }) => writtenAt < Number.POSITIVE_INFINITY)) return 'busy';
  if (store.hasChangedSince(endpointVersion, new Set([tenantOfSlice]))) return 'stale';
  const slice = [...store.fanOutSlices].find(
    (each) => each.eventId === eventId && each.firstOrdinal === firstOrdinal && each.visibleAt <= now,
  );
  if (slice === undefined) return 'gone';
  slice.writtenAt = visibleAt;
  const rest = slice.endpointIds.slice(endpointIds.length);
  if (rest.length > 0)
    store.fanOutSlices.add({
      ...slice,
      endpointIds: rest,
      firstOrdinal: firstOrdinal + endpointIds.length,
      visibleAt,
      writtenAt: Number.POSITIVE_INFINITY,
    });
  const { tenant, eventType } = slice;
  store.storeDebounceKeys(waiting);
  for (const { id, endpointId, dueAt, fifo } of waiting) {
    const time = dueAt === null ? null : toMicroseconds(dueAt);
    const seq = fifo ? slice.seq : store.nextSeq();
    store.queue.add(newQueueRow({ id, endpointId, tenant, eventType, seq, visibleAt, fifo, dueAt: time }));
  }
  for (const { id, endpointId, reason } of skipped)
    store.finished.set(id, {
      id,
      endpointId,
      tenant,
      eventType,
      attempts: 0,
      replays: 0,
      lastStatusCode: null,
      lastErrorClass: null,
      status: 'skipped',
      reason,
      finishedAt: store.now(),
    });
  return 'written';
}
