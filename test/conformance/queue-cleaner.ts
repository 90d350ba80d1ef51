import { describe, expect, it } from 'vitest';
import type { Uuid } from '../../src/domain/ids.ts';
import type { StoreFixture } from './support/fixture.ts';
import { eventIdAt } from './support/ids.ts';
import {
  accept,
  appendOptions,
  batchOf,
  DEAD,
  HOUR_MS,
  loadAll,
  newEvent,
  newSettlement,
  retryAt,
} from './support/records.ts';

export function describeQueueCleaner(getStore: () => StoreFixture): void {
  const skip = (endpointId: Uuid, except: readonly Uuid[] = []): Promise<number> =>
    getStore().queue.skip(endpointId, 'endpoint_disabled', except);

  describe('skipping', () => {
    it('ends waiting deliveries of a disabled endpoint, except those on the wire', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const ids = [await accept(store, endpointId), await accept(store, endpointId)];
      const onWire = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(ids[1]!, endpointId, retryAt(Date.now() + HOUR_MS))]));
      await store.setEnabled(endpointId, false);
      expect(await skip(endpointId, [onWire])).toBe(2);
      expect(await skip(endpointId, [onWire])).toBe(0);
      const skipped = { place: 'finished', status: 'skipped', reason: 'endpoint_disabled', replays: 0 };
      expect(await store.findDelivery(ids[0]!)).toEqual({ ...skipped, attempts: 0 });
      expect(await store.findDelivery(ids[1]!)).toEqual({ ...skipped, attempts: 1 });
      expect(await store.findDelivery(onWire)).toMatchObject({ status: 'waiting' });
      expect(await skip(endpointId)).toBe(1);
    });

    it('ends each delivery once if the call is repeated after a lost answer', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.setEnabled(endpointId, false);
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.queue.skip(endpointId, 'endpoint_disabled', [])).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect(await skip(endpointId)).toBe(0);
      expect(await store.findDelivery(id)).toMatchObject({ status: 'skipped', attempts: 0 });
    });

    it('does nothing once the endpoint is enabled again', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.setEnabled(endpointId, false);
      await store.setEnabled(endpointId, true);
      expect(await skip(endpointId)).toBe(0);
      expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting' });
    });

    it('ends waiting deliveries of a deleted endpoint, and of no other endpoint', async () => {
      const store = getStore();
      const [endpointId, other] = [await store.createEndpoint(), await store.createEndpoint()];
      const [id, kept] = [await accept(store, endpointId), await accept(store, other)];
      await store.deleteEndpoint(endpointId);
      expect(await store.queue.skip(endpointId, 'endpoint_deleted', [])).toBe(1);
      expect(await store.findDelivery(id)).toMatchObject({ status: 'skipped', reason: 'endpoint_deleted' });
      expect(await store.findDelivery(kept)).toMatchObject({ status: 'waiting' });
    });

    it('keeps the dead letter if its replay is skipped', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD, { blocksLane: true })]));
      await store.queue.replay([{ id, endpointId }]);
      await store.setEnabled(endpointId, false);
      expect(await skip(endpointId)).toBe(1);
      expect(await store.findDelivery(id)).toMatchObject({
        status: 'dead',
        reason: 'exhausted',
        attempts: 1,
      });
      expect((await store.queue.loadStates([endpointId])).get(endpointId)!.blocked).toBe(true);
    });

    it('ends 5,000 deliveries chunk by chunk, each of them once', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const events = Array.from({ length: 5_000 }, () => newEvent({ endpointIds: [endpointId] }));
      await store.eventStore.append(events, await appendOptions(store));
      await store.setEnabled(endpointId, false);
      let ended = 0;
      for (let count = 1; count > 0; ) {
        count = await skip(endpointId);
        ended += count;
        expect(count).toBeLessThan(5_000);
      }
      expect(ended).toBe(5_000);
    });
  });

  describe('expiring', () => {
    const anHourAgo = Date.now() - HOUR_MS;
    const acceptOld = (endpointId: Uuid, parts = {}): Promise<Uuid> =>
      accept(getStore(), endpointId, { id: eventIdAt(anHourAgo), ...parts });
    const expire = (endpointId: Uuid, except: readonly Uuid[] = [], blocksLane = false): Promise<number> =>
      getStore().queue.expire(endpointId, anHourAgo + 1_000, except, { blocksLane });

    it('makes old deliveries dead, except those on the wire', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const [old, onWire] = [await acceptOld(endpointId), await acceptOld(endpointId)];
      const young = await accept(store, endpointId);
      expect(await expire(endpointId, [onWire])).toBe(1);
      expect(await expire(endpointId, [onWire])).toBe(0);
      expect(await store.findDelivery(old)).toEqual({
        place: 'dead_letters',
        status: 'dead',
        reason: 'expired',
        attempts: 0,
        replays: 0,
      });
      for (const id of [onWire, young])
        expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting' });
      expect((await store.queue.loadStates([endpointId])).get(endpointId)!.blocked).toBe(false);
    });

    it('blocks a FIFO lane with fifo_on_dead = block', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      await acceptOld(endpointId);
      expect(await expire(endpointId, [], true)).toBe(1);
      expect((await store.queue.loadStates([endpointId])).get(endpointId)!.blocked).toBe(true);
    });

    it('counts the age of a scheduled delivery from its due time, and of a replayed one from the replay', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const scheduled = await acceptOld(endpointId, { delivery: { dueAt: Date.now() + HOUR_MS } });
      const replayed = await acceptOld(endpointId);
      const dead = await acceptOld(endpointId);
      await store.queue.settle(batchOf([newSettlement(dead, endpointId, DEAD)]));
      await store.queue.replay([replayed, dead].map((id) => ({ id, endpointId })));
      expect(await expire(endpointId)).toBe(0);
      for (const id of [scheduled, replayed, dead])
        expect(await store.findDelivery(id)).toMatchObject({ status: 'waiting' });
    });

    it('keeps the dead letter if its replay expires', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const id = await acceptOld(endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD)]));
      await store.queue.replay([{ id, endpointId }]);
      const soon = Date.now() + HOUR_MS;
      expect(await store.queue.expire(endpointId, soon, [], { blocksLane: false })).toBe(1);
      expect(await store.findDelivery(id)).toMatchObject({
        status: 'dead',
        reason: 'expired',
        attempts: 1,
        replays: 1,
      });
      expect(await store.queue.replay([{ id, endpointId }])).toEqual(new Set([id]));
    });
  });

  describe('an endpoint that becomes FIFO', () => {
    it('has its scheduled deliveries sorted into the order of acceptance', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const ids = [await accept(store, endpointId), await accept(store, endpointId)];
      await store.queue.settle(batchOf([newSettlement(ids[0]!, endpointId, retryAt(Date.now() + HOUR_MS))]));
      expect(await store.queue.moveToFifo(endpointId)).toBe(1);
      expect(await store.queue.moveToFifo(endpointId)).toBe(0);
      const { fresh, due } = await loadAll(store, endpointId);
      expect(fresh.map(({ id }) => id)).toEqual(ids);
      expect(due).toEqual([]);
    });
  });
}
