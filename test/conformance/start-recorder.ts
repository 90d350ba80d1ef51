import { describe, expect, it } from 'vitest';
import { CLOSED_BREAKER } from '../../src/domain/breaker.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import {
  accept,
  batchOf,
  FAILED,
  HOUR_MS,
  loadOne,
  newSettlement,
  newStart,
  OPEN_BREAKER,
  retryAt,
  WORKER,
} from './support/records.ts';

export function describeStartRecorder(getStore: () => StoreFixture): void {
  const prepare = async (): Promise<{ endpointId: Uuid; id: Uuid }> => {
    const endpointId = await getStore().createEndpoint();
    return { endpointId, id: await accept(getStore(), endpointId) };
  };

  describe('recording the start of a request', () => {
    it('lets the owner send, and shows the start to the next owner', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const before = await store.eventStore.now();
      const marked = await store.queue.markStarted([newStart(id, endpointId)], WORKER.id);
      expect(marked).toEqual(new Set([id]));
      const { startedAt, carefulStarts } = await loadOne(store, endpointId, id);
      expect(startedAt).toBeGreaterThanOrEqual(before - 1);
      expect(startedAt).toBeLessThanOrEqual(await store.eventStore.now());
      expect(carefulStarts).toBe(0);
    });

    it("records the worker's time if the store's clock has stepped back", async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const at = Math.floor(await store.eventStore.now()) + 40 * 24 * HOUR_MS;
      await store.queue.markStarted([newStart(id, endpointId, { at })], WORKER.id);
      expect((await loadOne(store, endpointId, id)).startedAt).toBe(at);
    });

    it('refuses a worker that does not own the shard', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const stranger = newId();
      expect(await store.queue.markStarted([newStart(id, endpointId)], stranger)).toEqual(new Set());
      expect((await loadOne(store, endpointId, id)).startedAt).toBeNull();
    });

    it('refuses a delivery that was attempted meanwhile or has ended, and records the others', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const other = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(Date.now()))]));
      const starts = [newStart(id, endpointId), newStart(other, endpointId), newStart(newId(), endpointId)];
      expect(await store.queue.markStarted(starts, WORKER.id)).toEqual(new Set([other]));
      const again = [newStart(id, endpointId, { attempts: 1 })];
      expect(await store.queue.markStarted(again, WORKER.id)).toEqual(new Set([id]));
    });

    it('counts careful starts until an attempt is settled', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const careful = [newStart(id, endpointId, { careful: true })];
      await store.queue.markStarted(careful, WORKER.id);
      await store.queue.markStarted(careful, WORKER.id);
      expect((await loadOne(store, endpointId, id)).carefulStarts).toBe(2);
      const outcome = { ...FAILED, startedAt: Date.now() };
      await store.queue.settle(batchOf([newSettlement(id, endpointId, retryAt(Date.now()), { outcome })]));
      expect(await loadOne(store, endpointId, id)).toMatchObject({ carefulStarts: 0, startedAt: null });
    });

    it('still lets the owner send when the call is repeated after a lost answer', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      await store.unreliable.loseNextAnswer();
      const start = newStart(id, endpointId);
      await expect(store.unreliable.queue.markStarted([start], WORKER.id)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      expect((await loadOne(store, endpointId, id)).startedAt).not.toBeNull();
      expect(await store.unreliable.queue.markStarted([start], WORKER.id)).toEqual(new Set([id]));
    });
  });

  describe('recording the start of a probe', () => {
    it('stores the deadline of the probe, so that no other worker starts one before', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const health = [{ endpointId, breaker: OPEN_BREAKER, failingSince: null }];
      await store.queue.settle(batchOf([], { health }));
      const nextProbeAt = Date.now() + HOUR_MS;
      const breaker = { ...OPEN_BREAKER, circuit: 'half_open' as const, nextProbeAt };
      const start = newStart(id, endpointId, { probe: { endpointId, breaker } });
      expect(await store.queue.markStarted([start], WORKER.id)).toEqual(new Set([id]));
      expect((await store.queue.loadStates([endpointId])).get(endpointId)!.breaker).toEqual(breaker);
    });

    it('does not change a circuit that is closed, or whose probe may not be sent', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      const closed = [{ endpointId, breaker: CLOSED_BREAKER, failingSince: null }];
      await store.queue.settle(batchOf([], { health: closed }));
      const probe = { endpointId, breaker: { ...OPEN_BREAKER, circuit: 'half_open' as const } };
      await store.queue.markStarted([newStart(id, endpointId, { probe })], WORKER.id);
      const stateOf = async () => (await store.queue.loadStates([endpointId])).get(endpointId)!.breaker;
      expect((await stateOf()).circuit).toBe('closed');
      const health = [{ endpointId, breaker: OPEN_BREAKER, failingSince: null }];
      await store.queue.settle(batchOf([], { health }));
      const late = newStart(id, endpointId, { probe, attempts: 7 });
      expect(await store.queue.markStarted([late], WORKER.id)).toEqual(new Set());
      expect(await stateOf()).toEqual(OPEN_BREAKER);
    });
  });

  describe('recording requests on the wire', () => {
    it('shows their start to the next owner, and does not count them as crashes', async () => {
      const store = getStore();
      const { endpointId, id } = await prepare();
      await store.queue.markStarted([newStart(id, endpointId, { careful: true })], WORKER.id);
      const startedAt = Date.now() - 1_500;
      await store.queue.recordOnWire([
        { id, startedAt },
        { id: newId(), startedAt },
      ]);
      expect(await loadOne(store, endpointId, id)).toMatchObject({ startedAt, carefulStarts: 0 });
      await store.queue.recordOnWire([{ id, startedAt }]);
      expect((await loadOne(store, endpointId, id)).carefulStarts).toBe(0);
    });
  });
}
