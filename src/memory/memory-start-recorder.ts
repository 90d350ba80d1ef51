import type { Uuid } from '../domain/ids.ts';
import type { Start, StartRecorder } from '../ports/delivery-queue.ts';
import { type MemoryStore, toMicroseconds } from './memory-store.ts';

export function createMemoryStartRecorder(store: MemoryStore): StartRecorder {
  return {
    async markStarted(starts, workerId) {
      const marked = new Set<Uuid>();
      for (const start of starts) if (markStarted(store, start, workerId)) marked.add(start.deliveryId);
      return marked;
    },
    async recordOnWire(deliveries) {
      for (const { id, startedAt } of deliveries) {
        const row = store.queue.get(id);
        if (row === undefined) continue;
        row.startedAt = toMicroseconds(startedAt);
        row.carefulStarts = Math.max(row.carefulStarts - 1, 0);
      }
    },
  };
}

/** Returns false if the delivery has changed or the worker does not own the shard. */
function markStarted(store: MemoryStore, start: Start, workerId: Uuid): boolean {
  const row = store.queue.get(start.deliveryId);
  if (row === undefined || row.attempts !== start.attempts) return false;
  if (store.shards[start.shard]!.owner !== workerId) return false;
  row.startedAt = Math.max(store.now(), start.at ?? 0);
  if (start.careful) row.carefulStarts += 1;
  if (start.probe !== null) {
    const { endpointId, breaker } = start.probe;
    const health = store.health.get(endpointId);
    if (health !== undefined && health.breaker.circuit !== 'closed') {
      const nextProbeAt = toMicroseconds(breaker.nextProbeAt ?? 0);
      health.breaker = { ...health.breaker, circuit: 'half_open', nextProbeAt };
    }
  }
  return true;
}
