import { describe, expect, it } from 'vitest';
import { shardOf } from '../../src/domain/endpoint.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { BatchStart } from '../../src/ports/batch-log.ts';
import type { StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import { accept, batchOf, DELIVERED, loadOne, newSettlement, retryAt, WORKER } from './support/records.ts';

const NOBODY: ReadonlySet<Uuid> = new Set();

const startOf = (id: Uuid, endpointId: Uuid, deliveryIds: readonly Uuid[], attempts = 0): BatchStart => ({
  id,
  endpointId,
  shard: shardOf(endpointId),
  members: deliveryIds.map((deliveryId) => ({ deliveryId, attempts })),
});

export function describeBatchLog(getStore: () => StoreFixture): void {
  const prepare = async (): Promise<{ endpointId: Uuid; ids: [Uuid, Uuid, Uuid] }> => {
    const store = getStore();
    const endpointId = await store.createEndpoint();
    const next = () => accept(store, endpointId);
    return { endpointId, ids: [await next(), await next(), await next()] };
  };
  const record = (starts: readonly BatchStart[], ended: readonly Uuid[] = [], workerId = WORKER.id) =>
    getStore().queue.recordBatches(starts, ended, workerId);

  describe('recording batches (FAN-4)', () => {
    it('shows an open batch to the next owner, with its events in their order', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const id = newId();
      const deliveryIds = [ids[2], ids[0], ids[1]];
      const before = await store.eventStore.now();
      expect(await record([startOf(id, endpointId, deliveryIds)])).toEqual(new Set([id]));
      const [open, ...others] = await store.queue.loadOpenBatches([endpointId]);
      expect(others).toEqual([]);
      expect(open).toMatchObject({ id, endpointId, deliveryIds });
      expect(open!.startedAt).toBeGreaterThanOrEqual(before - 1);
      expect(await store.queue.loadOpenBatches([newId()])).toEqual([]);
    });

    it('keeps the composition of a batch that has ended', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const id = newId();
      await record([startOf(id, endpointId, ids)]);
      await record([], [id]);
      expect(await store.queue.loadOpenBatches([endpointId])).toEqual([]);
      const { composition, waiting } = await store.queue.loadBatch(id);
      expect(composition).toEqual(ids);
      expect(waiting.map((delivery) => delivery.id)).toEqual(ids);
    });

    it('allows a batch whose start is recorded again after a lost answer', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const start = startOf(newId(), endpointId, ids);
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.queue.recordBatches([start], [], WORKER.id)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await store.queue.loadOpenBatches([endpointId])).toHaveLength(1);
      expect(await record([start])).toEqual(new Set([start.id]));
      expect(await store.queue.loadOpenBatches([endpointId])).toHaveLength(1);
    });

    it('refuses other events under an id that is known', async () => {
      const { endpointId, ids } = await prepare();
      const id = newId();
      await record([startOf(id, endpointId, ids)]);
      expect(await record([startOf(id, endpointId, ids.slice(0, 2))])).toEqual(NOBODY);
      expect(await record([startOf(id, endpointId, ids.toReversed())])).toEqual(NOBODY);
      expect(await record([startOf(id, endpointId, ids)])).toEqual(new Set([id]));
    });

    it('refuses a batch if one of its events was attempted or has ended, and records the others', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const [first, second, third] = ids;
      await store.queue.settle(batchOf([newSettlement(first, endpointId, retryAt(Date.now()))]));
      const [changed, unchanged] = [newId(), newId()];
      const starts = [
        startOf(changed, endpointId, [first, second]),
        startOf(unchanged, endpointId, [second, third]),
      ];
      expect(await record(starts)).toEqual(new Set([unchanged]));
      expect((await store.queue.loadBatch(changed)).composition).toBeNull();
      await store.queue.settle(batchOf([newSettlement(third, endpointId, DELIVERED)]));
      expect(await record([startOf(newId(), endpointId, [second, third])])).toEqual(NOBODY);
      expect((await store.queue.loadBatch(unchanged)).waiting.map(({ id }) => id)).toEqual([second]);
    });

    it('refuses a worker that does not own the shard, and does not let it close a batch', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const id = newId();
      expect(await record([startOf(newId(), endpointId, ids)], [], newId())).toEqual(NOBODY);
      await record([startOf(id, endpointId, ids)]);
      await record([], [id], newId());
      expect(await store.queue.loadOpenBatches([endpointId])).toHaveLength(1);
    });
  });

  describe('deliveries that belong to a batch (FAN-4)', () => {
    it('stores the batch with a retry, and finds its deliveries even if it was never sent', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const half = newId();
      const settlements = ids.slice(0, 2).map((id) => ({
        ...newSettlement(id, endpointId, { kind: 'retry', dueAt: Date.now(), isUncounted: true } as const),
        batchId: half,
      }));
      await store.queue.settle(batchOf(settlements));
      const { composition, waiting } = await store.queue.loadBatch(half);
      expect(composition).toBeNull();
      expect(waiting.map(({ id }) => id)).toEqual(ids.slice(0, 2));
      const uncounted = { batchId: half, attempts: 1, attemptsBeforeReplay: 1 };
      expect(await loadOne(store, endpointId, ids[0])).toMatchObject(uncounted);
      expect(await loadOne(store, endpointId, ids[2])).toMatchObject({ batchId: null });
    });

    it('lets a delivery leave its batch when it is replayed, or retried without one', async () => {
      const store = getStore();
      const { endpointId, ids } = await prepare();
      const batchId = newId();
      const later = Date.now() + 60_000;
      const retried = ids.map((id) => ({ ...newSettlement(id, endpointId, retryAt(later)), batchId }));
      await store.queue.settle(batchOf(retried));
      await store.queue.replay([{ id: ids[0], endpointId }]);
      expect(await loadOne(store, endpointId, ids[0])).toMatchObject({ batchId: null, trigger: 'replay' });
      const again = newSettlement(ids[1], endpointId, retryAt(later), { attemptsBefore: 1 });
      await store.queue.settle(batchOf([again]));
      expect(await loadOne(store, endpointId, ids[1])).toMatchObject({ batchId: null, attempts: 2 });
      expect((await store.queue.loadBatch(batchId)).waiting.map(({ id }) => id)).toEqual([ids[2]]);
    });
  });
}
