import { describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { StoreFixture } from './support/fixture.ts';
import { accept, batchOf, DEAD, HOUR_MS, newSettlement, retryAt } from './support/records.ts';

export function describeProbes(getStore: () => StoreFixture): void {
  const loadProbes = async (endpointId: Uuid): Promise<Uuid[]> =>
    (await getStore().queue.loadProbes()).filter((row) => row.endpointId === endpointId).map(({ id }) => id);

  describe('requesting a probe', () => {
    it('chooses the oldest waiting delivery, also one whose retry is due later', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const ids = [await accept(store, endpointId), await accept(store, endpointId)];
      const [oldest] = ids.toSorted();
      await store.queue.settle(batchOf([newSettlement(oldest!, endpointId, retryAt(Date.now() + HOUR_MS))]));
      expect(await store.queue.requestProbe(endpointId)).toBe(oldest);
      expect(await loadProbes(endpointId)).toEqual([oldest]);
    });

    it('leaves out deliveries that are scheduled for later and were never attempted', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      await accept(store, endpointId, { delivery: { dueAt: Date.now() + HOUR_MS } });
      expect(await store.queue.requestProbe(endpointId)).toBeNull();
      const id = await accept(store, endpointId);
      expect(await store.queue.requestProbe(endpointId)).toBe(id);
    });

    it('chooses the head of a FIFO endpoint by its place in the order', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint({ config: { ordering: 'fifo' } });
      const fifo = { delivery: { fifo: true } };
      const [first, second] = [await accept(store, endpointId, fifo), await accept(store, endpointId, fifo)];
      await store.queue.settle(batchOf([newSettlement(first, endpointId, DEAD)]));
      // The replay puts the oldest event at the end of the order.
      await store.queue.replay([{ id: first, endpointId }]);
      expect(await store.queue.requestProbe(endpointId)).toBe(second);
    });

    it('counts for one attempt, and allows one probe of an endpoint at a time', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      expect(await store.queue.requestProbe(endpointId)).toBe(id);
      await accept(store, endpointId);
      expect(await store.queue.requestProbe(endpointId)).toBeNull();
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(Date.now() + HOUR_MS))]));
      expect(await loadProbes(endpointId)).toEqual([]);
      expect(await store.queue.requestProbe(endpointId)).not.toBeNull();
    });

    it('is stored once if the call is repeated after a lost answer', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.queue.requestProbe(endpointId)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await store.queue.requestProbe(endpointId)).toBeNull();
      expect(await loadProbes(endpointId)).toEqual([id]);
    });

    it('chooses one delivery if many request at once, and none if nothing waits', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      expect(await store.queue.requestProbe(endpointId)).toBeNull();
      await accept(store, endpointId);
      const chosen = await Promise.all(
        Array.from({ length: 8 }, () => store.queue.requestProbe(endpointId).catch(() => null)),
      );
      expect(chosen.filter((id) => id !== null)).toHaveLength(1);
      expect(await loadProbes(endpointId)).toHaveLength(1);
    });
  });
}
