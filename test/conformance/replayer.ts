import { describe, expect, it } from 'vitest';
import { deliveryIdOf, type Uuid } from '../../src/domain/ids.ts';
import type { StoreFixture } from './support/fixture.ts';
import { newId, newWideEventId } from './support/ids.ts';
import {
  accept,
  appendOptions,
  batchOf,
  DEAD,
  DELIVERED,
  HOUR_MS,
  loadAll,
  loadOne,
  newEvent,
  newSettlement,
  newStart,
  retryAt,
  WORKER,
} from './support/records.ts';

export function describeReplayer(getStore: () => StoreFixture): void {
  const replay = (endpointId: Uuid, ...ids: Uuid[]): Promise<Set<Uuid>> =>
    getStore().queue.replay(ids.map((id) => ({ id, endpointId })));

  describe('replaying', () => {
    it('makes a scheduled retry due now, and starts its schedule again', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(Date.now() + HOUR_MS))]));
      const before = await loadOne(store, endpointId, id);
      expect(await replay(endpointId, id)).toEqual(new Set([id]));
      const after = await loadOne(store, endpointId, id);
      expect(after).toMatchObject({
        seq: before.seq,
        attempts: 1,
        attemptsBeforeReplay: 1,
        trigger: 'replay',
        agesFrom: after.dueAt,
      });
      expect(after.dueAt).toBeLessThanOrEqual(await store.eventStore.now());
      expect(after.dueAt).toBe(Math.floor(after.dueAt!));
      expect(await store.findDelivery(id)).toMatchObject({ replays: 1 });
    });

    it("does not make a delivery old if the store's clock has stepped back", async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const [waiting, dead] = [await accept(store, endpointId), await accept(store, endpointId)];
      const retry = newSettlement(waiting, endpointId, retryAt(Date.now() + HOUR_MS));
      await store.queue.settle(batchOf([retry, newSettlement(dead, endpointId, DEAD)]));
      const now = Math.floor(await store.eventStore.now()) + 40 * 24 * HOUR_MS;
      const deliveries = [waiting, dead].map((id) => ({ id, endpointId }));
      expect(await store.queue.replay(deliveries, now)).toEqual(new Set([waiting, dead]));
      for (const id of [waiting, dead])
        expect(await loadOne(store, endpointId, id)).toMatchObject({ agesFrom: now, dueAt: now });
    });

    it('keeps a delivery that was never attempted fresh', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const ids = [await accept(store, endpointId), await accept(store, endpointId)];
      expect(await replay(endpointId, ids[0]!)).toEqual(new Set([ids[0]]));
      const { fresh, due } = await loadAll(store, endpointId);
      expect(fresh.map(({ id }) => id)).toEqual(ids);
      expect(due).toEqual([]);
      expect(fresh[0]).toMatchObject({ trigger: 'auto', dueAt: null });
    });

    it('finds the event of a delivery whose ordinal has more than 16 bits', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const event = newEvent({ id: newWideEventId() });
      const id = deliveryIdOf(event.id, 70_000);
      const deliveries = [{ id, endpointId, dueAt: null, fifo: false }];
      await store.eventStore.append([{ ...event, deliveries }], await appendOptions(store));
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DELIVERED)]));
      // A late result of another worker is logged, because the event still exists.
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DELIVERED)]));
      expect((await store.attemptsOf(id)).map(({ outcome }) => outcome).toSorted()).toEqual([
        'delivered',
        'superseded',
      ]);
      expect(await replay(endpointId, id)).toEqual(new Set([id]));
      expect(await store.findDelivery(id)).toMatchObject({ place: 'queue', replays: 1 });
    });

    it('queues dead and finished deliveries again, at the end of the order', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint({ config: { ordering: 'fifo' } });
      const fifo = { delivery: { fifo: true } };
      const [dead, delivered, waiting] = [
        await accept(store, endpointId, fifo),
        await accept(store, endpointId, fifo),
        await accept(store, endpointId, fifo),
      ];
      await store.queue.settle(
        batchOf([newSettlement(dead, endpointId, DEAD), newSettlement(delivered, endpointId, DELIVERED)]),
      );
      expect(await replay(endpointId, dead, delivered)).toEqual(new Set([dead, delivered]));
      const { fresh } = await loadAll(store, endpointId);
      expect(fresh.map(({ id }) => id)).toEqual([waiting, dead, delivered]);
      expect(fresh[1]).toMatchObject({ attempts: 1, attemptsBeforeReplay: 1, trigger: 'replay' });
    });

    it('can be requested twice, and queues the delivery once', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD)]));
      await Promise.all([replay(endpointId, id), replay(endpointId, id)]);
      await replay(endpointId, id);
      const { fresh, due } = await loadAll(store, endpointId);
      expect([...fresh, ...due].map((delivery) => delivery.id)).toEqual([id]);
      expect(await store.findDelivery(id)).toMatchObject({ replays: 1 });
    });

    it('queues the delivery once if the call is repeated after a lost answer', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD)]));
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.queue.replay([{ id, endpointId }])).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      await replay(endpointId, id);
      const { fresh, due } = await loadAll(store, endpointId);
      expect([...fresh, ...due].map((delivery) => delivery.id)).toEqual([id]);
      expect(await store.findDelivery(id)).toMatchObject({ replays: 1 });
    });

    it('counts only replays that make a request of their own', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      const replays = async () => (await store.findDelivery(id))?.replays;
      await replay(endpointId, id);
      expect(await replays()).toBe(0);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DELIVERED)]));
      await Promise.all([replay(endpointId, id), replay(endpointId, id)]);
      await replay(endpointId, id);
      expect(await replays()).toBe(1);
      const later = retryAt(Date.now() + HOUR_MS);
      const { attempts: attemptsBefore, agesFrom } = await loadOne(store, endpointId, id);
      const failed = newSettlement(id, endpointId, later, { attemptsBefore, agesFrom, trigger: 'replay' });
      expect(await store.queue.settle(batchOf([failed]))).toEqual(new Set([id]));
      await replay(endpointId, id);
      await replay(endpointId, id);
      expect(await replays()).toBe(2);
    });

    it('moves nothing of a disabled or deleted endpoint, and nothing that does not exist', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD)]));
      expect(await replay(endpointId, newId())).toEqual(new Set());
      await store.setEnabled(endpointId, false);
      expect(await replay(endpointId, id)).toEqual(new Set());
      await store.setEnabled(endpointId, true);
      await store.deleteEndpoint(endpointId);
      expect(await replay(endpointId, id)).toEqual(new Set());
      expect(await store.findDelivery(id)).toMatchObject({ status: 'dead', replays: 0 });
    });

    it('keeps a start that an earlier owner recorded', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.markStarted([newStart(id, endpointId)], WORKER.id);
      await replay(endpointId, id);
      expect((await loadOne(store, endpointId, id)).startedAt).not.toBeNull();
    });
  });
}
