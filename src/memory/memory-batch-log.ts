import type { Uuid } from '../domain/ids.ts';
import type { BatchLog, BatchStart } from '../ports/batch-log.ts';
import { bySeq, toLoaded } from './memory-lane-reader.ts';
import type { MemoryStore } from './memory-store.ts';

export function createMemoryBatchLog(store: MemoryStore): BatchLog {
  return {
    async loadOpenBatches(endpointIds) {
      const wanted = new Set(endpointIds);
      return [...store.openBatches].flatMap(([id, startedAt]) => {
        const { endpointId, deliveryIds } = store.batches.get(id)!;
        return wanted.has(endpointId) ? [{ id, endpointId, deliveryIds, startedAt }] : [];
      });
    },
    async loadBatch(id) {
      const composition = store.batches.get(id)?.deliveryIds ?? null;
      const rows =
        composition === null
          ? store.queue.all().filter(({ batchId }) => batchId === id)
          : composition.flatMap((deliveryId) => store.queue.get(deliveryId) ?? []);
      return { composition, waiting: rows.sort(bySeq).map(toLoaded) };
    },
    async recordBatches(starts, ended, workerId) {
      const allowed = new Set<Uuid>();
      for (const start of starts) if (recordStart(store, start, workerId)) allowed.add(start.id);
      for (const id of ended) {
        const batch = store.batches.get(id);
        if (batch !== undefined && store.ownerOf(batch.endpointId) === workerId) store.openBatches.delete(id);
      }
      return allowed;
    },
  };
}

function recordStart(
  store: MemoryStore,
  { id, endpointId, shard, members, at = 0 }: BatchStart,
  workerId: Uuid,
): boolean {
  if (store.shards[shard]!.owner !== workerId || store.shardOfLane(endpointId) !== shard) return false;
  const isUnchanged = members.every(
    ({ deliveryId, attempts }) => store.queue.get(deliveryId)?.attempts === attempts,
  );
  const deliveryIds = members.map(({ deliveryId }) => deliveryId);
  const known = store.batches.get(id)?.deliveryIds ?? deliveryIds;
  if (!isUnchanged || known.join() !== deliveryIds.join()) return false;
  store.batches.set(id, { endpointId, deliveryIds });
  store.openBatches.set(id, Math.max(store.now(), at));
  return true;
}
