import { describe, expect, it } from 'vitest';
import { CLOSED_BREAKER } from '../../src/domain/breaker.ts';
import { shardOf } from '../../src/domain/endpoint.ts';
import { timeOfId, type Uuid } from '../../src/domain/ids.ts';
import type { StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import {
  accept,
  batchOf,
  DEAD,
  HOUR_MS,
  loadAll,
  newSettlement,
  OPEN_BREAKER,
  retryAt,
  WORKER,
} from './support/records.ts';

export function describeLaneReader(getStore: () => StoreFixture): void {
  const acceptMany = async (
    endpointId: Uuid,
    count: number,
    dueAt: number | null = null,
  ): Promise<Uuid[]> => {
    const ids: Uuid[] = [];
    for (let i = 0; i < count; i += 1)
      ids.push(
        await accept(getStore(), endpointId, {
          delivery: { dueAt: dueAt === null ? null : dueAt + i * 1000 },
        }),
      );
    return ids;
  };

  describe('listing endpoints with recent deliveries', () => {
    it('returns each endpoint with a waiting delivery of a recent event once', async () => {
      const { queue, createEndpoint } = getStore();
      const [busy, scheduled, settled, idle] = [
        await createEndpoint(),
        await createEndpoint(),
        await createEndpoint(),
        await createEndpoint(),
      ];
      const ids = await acceptMany(busy, 3);
      await acceptMany(scheduled, 1, Date.now() + HOUR_MS);
      const [done] = await acceptMany(settled, 1);
      await queue.settle(batchOf([newSettlement(done!, settled, { kind: 'delivered' })]));
      const mine = (found: readonly Uuid[]) =>
        found.filter((id) => [busy, scheduled, settled, idle].includes(id)).toSorted();
      expect(mine(await queue.listRecent(timeOfId(ids[0]!)))).toEqual([busy, scheduled].toSorted());
      expect(mine(await queue.listRecent(timeOfId(ids[0]!) + HOUR_MS))).toEqual([]);
    });
  });

  describe('loading lanes', () => {
    it('returns a lane for every endpoint, each with its own deliveries', async () => {
      const { queue, createEndpoint } = getStore();
      const [busy, other, idle] = [await createEndpoint(), await createEndpoint(), await createEndpoint()];
      const [id] = await acceptMany(busy, 1);
      await acceptMany(other, 1);
      const request = { freshAfter: 0, dueFrom: 0, limit: 10 };
      const lanes = await queue.loadLanes([
        { ...request, endpointId: idle },
        { ...request, endpointId: busy },
      ]);
      expect([...lanes.keys()].toSorted()).toEqual([busy, idle].toSorted());
      expect(lanes.get(idle)).toEqual({ fresh: [], due: [] });
      expect(lanes.get(busy)).toEqual({
        fresh: [
          {
            id,
            endpointId: busy,
            seq: expect.any(Number),
            attempts: 0,
            attemptsBeforeReplay: 0,
            dueAt: null,
            agesFrom: timeOfId(id!),
            trigger: 'auto',
            lastErrorClass: null,
            startedAt: null,
            carefulStarts: 0,
            batchId: null,
          },
        ],
        due: [],
      });
    });

    it('loads fresh deliveries in order, after a given number, up to the limit', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const ids = await acceptMany(endpointId, 5);
      const load = async (freshAfter: number) =>
        (await store.queue.loadLanes([{ endpointId, freshAfter, dueFrom: null, limit: 3 }])).get(endpointId)!;
      const first = await load(0);
      expect(first.fresh.map(({ id }) => id)).toEqual(ids.slice(0, 3));
      expect((await load(first.fresh.at(-1)!.seq)).fresh.map(({ id }) => id)).toEqual(ids.slice(3));
    });

    it('loads scheduled deliveries by due time, from a given time on, and each kind only if requested', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const soon = Date.now() + HOUR_MS;
      const late = await acceptMany(endpointId, 2, soon + 10_000);
      const early = await acceptMany(endpointId, 2, soon);
      const fresh = await acceptMany(endpointId, 1);
      const load = async (freshAfter: number | null, dueFrom: number | null) => {
        const lanes = await store.queue.loadLanes([{ endpointId, freshAfter, dueFrom, limit: 3 }]);
        const lane = lanes.get(endpointId)!;
        return [lane.fresh.map(({ id }) => id), lane.due.map(({ id }) => id)];
      };
      expect(await load(null, 0)).toEqual([[], [...early, late[0]!]]);
      expect(await load(null, soon + 10_000)).toEqual([[], late]);
      expect(await load(0, null)).toEqual([fresh, []]);
    });

    it('loads a retry of a FIFO endpoint in the order of acceptance, among the fresh deliveries', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint({ config: { ordering: 'fifo' } });
      const ids = [];
      for (let i = 0; i < 3; i += 1) ids.push(await accept(store, endpointId, { delivery: { fifo: true } }));
      const retry = newSettlement(ids[0]!, endpointId, retryAt(Date.now() + HOUR_MS), { fifo: true });
      await store.queue.settle(batchOf([retry]));
      const { fresh, due } = await loadAll(store, endpointId);
      expect(fresh.map(({ id }) => id)).toEqual(ids);
      expect(due).toEqual([]);
    });
  });

  describe('loading the states of lanes', () => {
    const stateOf = async (endpointId: Uuid) =>
      (await getStore().queue.loadStates([endpointId])).get(endpointId)!;

    it('says that an endpoint is new if its shard had an owner before, and it was never disabled', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const fresh = {
        breaker: CLOSED_BREAKER,
        failingSince: null,
        holdUntil: null,
        adaptive: null,
        blocked: false,
        isNew: true,
        shard: shardOf(endpointId),
      };
      expect(await stateOf(endpointId)).toEqual(fresh);
      await store.setEnabled(endpointId, false);
      await store.setEnabled(endpointId, true);
      expect(await stateOf(endpointId)).toEqual({ ...fresh, isNew: false });
    });

    it('returns a healthy state for an endpoint that does not exist', async () => {
      const unknown = newId();
      const states = await getStore().queue.loadStates([unknown]);
      const state = states.get(unknown) ?? { breaker: CLOSED_BREAKER, failingSince: null, blocked: false };
      expect(state).toMatchObject({ breaker: CLOSED_BREAKER, failingSince: null, blocked: false });
    });

    it('returns the stored breaker, the start of the failures and the latest time to wait for', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint();
      const failingSince = Date.now() - HOUR_MS;
      await store.queue.settle(
        batchOf([], { health: [{ endpointId, breaker: OPEN_BREAKER, failingSince }] }),
      );
      expect(await stateOf(endpointId)).toMatchObject({ breaker: OPEN_BREAKER, failingSince });
      const holdUntil = Date.now() + HOUR_MS;
      for (const until of [holdUntil, holdUntil - 1_000, null])
        await store.queue.settle(
          batchOf([], { health: [{ endpointId, breaker: OPEN_BREAKER, failingSince, holdUntil: until }] }),
        );
      expect(await stateOf(endpointId)).toMatchObject({ failingSince, holdUntil });
      const adaptive = {
        inFlightLimit: 2,
        timeoutMs: 4_500,
        reason: 'timeouts',
        since: 1_700_000_000_123,
      } as const;
      const limited = { endpointId, breaker: OPEN_BREAKER, failingSince, adaptive };
      await store.queue.settle(batchOf([], { health: [limited], worker: WORKER }));
      expect(await stateOf(endpointId)).toMatchObject({ adaptive });
      const closed = { endpointId, breaker: CLOSED_BREAKER, failingSince: null };
      await store.queue.settle(batchOf([], { health: [closed], worker: WORKER }));
      expect(await stateOf(endpointId)).toMatchObject({
        breaker: CLOSED_BREAKER,
        failingSince: null,
        adaptive: null,
      });
    });

    it('says that a dead letter blocks the lane until it is replayed', async () => {
      const store = getStore();
      const endpointId = await store.createEndpoint({ config: { ordering: 'fifo' } });
      const id = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(id, endpointId, DEAD, { blocksLane: true })]));
      expect((await stateOf(endpointId)).blocked).toBe(true);
      await store.queue.replay([{ id, endpointId }]);
      expect((await stateOf(endpointId)).blocked).toBe(false);
    });
  });

  describe('counting waiting deliveries', () => {
    it('counts fresh and scheduled deliveries separately, up to a limit, with the oldest of each', async () => {
      const store = getStore();
      const [endpointId, idle] = [await store.createEndpoint(), await store.createEndpoint()];
      const soon = Date.now() + HOUR_MS;
      const fresh = await acceptMany(endpointId, 3);
      await acceptMany(endpointId, 1, soon);
      const infinite = Number.POSITIVE_INFINITY;
      const counts = await store.queue.countWaiting([endpointId, idle], 2);
      expect(counts.toSorted((a, b) => b.fresh - a.fresh)).toEqual([
        { endpointId, fresh: 2, retries: 1, oldestFresh: timeOfId(fresh[0]!), firstDue: soon },
        { endpointId: idle, fresh: 0, retries: 0, oldestFresh: infinite, firstDue: infinite },
      ]);
    });
  });
}
