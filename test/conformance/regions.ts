import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WIRE_VERSION } from '../../src/dispatch/ownership.ts';
import { shardOf } from '../../src/domain/endpoint.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { EndpointDirectory } from '../../src/ports/endpoint-directory.ts';
import { digestOf, type OwnershipSession } from '../../src/ports/ownership-store.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import { accept, batchOf, HOUR_MS, newStart, OPEN_BREAKER } from './support/records.ts';

const OPTIONS = { stopping: false, known: null, listsEmptyRegions: true };
const ALL_SHARDS = 256;

interface TestWorker {
  readonly id: Uuid;
  readonly session: OwnershipSession;
}

export function describeRegions(name: string, createFixture: CreateStoreFixture): void {
  describe(`SCL-5: regions in ${name}`, () => {
    let store: StoreFixture;
    let directory: EndpointDirectory;

    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(async () => {
      await store.clear();
      directory = store.createDirectory();
    });
    afterAll(() => store?.close());

    const join = async (region: string | null): Promise<TestWorker> => {
      const id = newId();
      const registration = { id, name: `worker ${region}`, wireVersion: WIRE_VERSION, region };
      return { id, session: await store.createOwnership().connect(registration, () => {}) };
    };
    const take = ({ id, session }: TestWorker, emptyRegion: number | null = null) =>
      session.takeShards(id, HOUR_MS, emptyRegion);
    const renew = async ({ id, session }: TestWorker, options: Partial<typeof OPTIONS> = {}) =>
      (await session.renew(id, { ...OPTIONS, ...options }))!;
    const regionsOf = (taken: readonly { readonly shard: number }[]): number[] => [
      ...new Set(taken.map(({ shard }) => Math.floor(shard / ALL_SHARDS))),
    ];
    /** The endpoint as a process that has just started sees it. */
    const read = async (id: Uuid) => {
      await directory.refresh();
      return directory.get(id)!;
    };
    const move = async (worker: TestWorker, id: Uuid): Promise<void> =>
      store.createOwnership().moveLanes(worker.id, [await read(id)]);

    describe('shards', () => {
      it('of each region are divided among its own workers', async () => {
        const [home, eu, otherEu, us] = [
          await join(null),
          await join('eu'),
          await join('eu'),
          await join('us'),
        ];
        const taken = [await take(home), await take(eu), await take(otherEu), await take(us)];
        expect(taken.map((shards) => shards.length)).toEqual([256, 128, 128, 256]);
        expect(regionsOf(taken[0]!)).toEqual([0]);
        expect(regionsOf(taken[1]!)).toEqual(regionsOf(taken[2]!));
        expect(new Set(taken.flatMap(regionsOf)).size).toBe(3);
        const shards = taken.flat().map(({ shard }) => shard);
        expect(new Set(shards).size).toBe(3 * ALL_SHARDS);
        const epochs = taken.flat().map(({ epoch }) => epoch);
        expect(new Set(epochs).size).toBe(3 * ALL_SHARDS);
      });

      it('keep their numbers when the workers of the region return', async () => {
        const eu = await join('eu');
        const before = regionsOf(await take(eu));
        await eu.session.unregister(eu.id);
        await join('us');
        expect(regionsOf(await take(await join('eu')))).toEqual(before);
      });

      it('of another region count neither as free for a worker nor as its surplus', async () => {
        const home = await join(null);
        const taken = await take(home);
        const eu = await join('eu');
        expect((await renew(home)).isBalanced).toBe(true);
        expect(await home.session.countSurplusShards(home.id)).toBe(0);
        expect((await renew(eu)).isBalanced).toBe(false);
        await take(eu);
        expect((await renew(eu)).isBalanced).toBe(true);
        const known = digestOf(taken.map(({ epoch }) => epoch));
        expect((await eu.session.renew(home.id, { ...OPTIONS, known }))!.shards).toBeNull();
      });

      it('of a worker that died are freed by workers of any region', async () => {
        const [home, eu] = [await join(null), await join('eu')];
        await take(eu);
        const { others } = await renew(home);
        const silent = others.map(({ id, renewal }) => ({ id, renewal, isOverdue: true }));
        expect(await home.session.removeDeadWorkers(silent)).toHaveLength(ALL_SHARDS);
        expect(regionsOf(await take(home))).toEqual([0]);
      });
    });

    describe('a region without workers', () => {
      it('is listed by a renewal, until a worker of it registers', async () => {
        const home = await join(null);
        const eu = await join('eu');
        const [number] = regionsOf(await take(eu));
        expect((await renew(home)).emptyRegions).not.toContain(number);
        await renew(eu, { stopping: true });
        expect((await renew(home)).emptyRegions).toContain(number);
        await eu.session.unregister(eu.id);
        expect((await renew(home)).emptyRegions).toContain(number);
        expect((await renew(home)).emptyRegions).not.toContain(0);
        await join('eu');
        expect((await renew(home)).emptyRegions).not.toContain(number);
        expect((await renew(home, { listsEmptyRegions: false })).emptyRegions).toBeNull();
      });

      it('gives its shards to workers of the default region, each its share', async () => {
        const eu = await join('eu');
        const [number] = regionsOf(await take(eu));
        const [first, second] = [await join(null), await join(null)];
        await take(first);
        expect(await take(first, number!)).toEqual([]);
        await eu.session.unregister(eu.id);
        const taken = [await take(first, number!), await take(second, number!)];
        expect(taken.map((shards) => shards.length)).toEqual([128, 128]);
        expect(regionsOf(taken.flat())).toEqual([number]);
        expect((await renew(first)).shards).toHaveLength(256);
        expect((await renew(first)).isBalanced).toBe(false); // The second one has taken none of its own shards.
        await take(second);
        expect((await renew(first)).isBalanced).toBe(true);
        expect(await first.session.countSurplusShards(first.id)).toBe(0);
        // A worker of the region gets the shards when they are released.
        const back = await join('eu');
        expect(await take(back)).toEqual([]);
        expect(await take(first, number!)).toEqual([]);
        await first.session.releaseShards(
          first.id,
          taken[0]!.map(({ shard }) => shard),
        );
        expect(await take(back)).toHaveLength(128);
      });
    });

    describe('a lane', () => {
      it('moves to the region that its endpoint names, when its owner says so', async () => {
        const [home, eu] = [await join(null), await join('eu')];
        await take(home);
        const [number] = regionsOf(await take(eu));
        const id = await store.createEndpoint();
        expect(await read(id)).toMatchObject({ shard: null, wantedShard: null, placement: 0 });
        await store.changeRegion(id, 'eu');
        const wantedShard = number! * ALL_SHARDS + shardOf(id);
        expect(await read(id)).toMatchObject({ shard: null, wantedShard });
        await move(eu, id);
        expect(await read(id)).toMatchObject({ shard: null, wantedShard });
        const before = await store.endpointVersion();
        await move(home, id);
        expect(await store.endpointVersion()).toBeGreaterThan(before);
        expect(await read(id)).toMatchObject({ shard: wantedShard, wantedShard });
        expect((await store.queue.loadStates([id])).get(id)).toMatchObject({ shard: wantedShard });
        await store.changeRegion(id, null);
        await move(home, id);
        expect(await read(id)).toMatchObject({ shard: wantedShard, wantedShard: null });
        await move(eu, id);
        expect(await read(id)).toMatchObject({ shard: null, wantedShard: null });
      });

      it('is moved by any worker if nobody owns its shard', async () => {
        const eu = await join('eu');
        await take(eu);
        const id = await store.createEndpoint();
        await store.changeRegion(id, 'eu');
        await move(eu, id);
        expect((await read(id)).shard).not.toBeNull();
      });

      it('stays if its region has changed since the worker read it', async () => {
        const [home, eu] = [await join(null), await join('eu')];
        await take(home);
        await take(eu);
        const id = await store.createEndpoint();
        await store.changeRegion(id, 'eu');
        const outdated = await read(id);
        await store.changeRegion(id, null);
        await store.changeRegion(id, 'eu');
        await store.createOwnership().moveLanes(home.id, [outdated]);
        expect((await read(id)).shard).toBeNull();
        await move(home, id);
        expect((await read(id)).shard).not.toBeNull();
      });

      it('is not new after a change of region: an earlier owner may have sent to it', async () => {
        const [home, eu] = [await join(null), await join('eu')];
        await take(home);
        await take(eu);
        const id = await store.createEndpoint();
        const isNew = async () => (await store.queue.loadStates([id])).get(id)!.isNew;
        expect(await isNew()).toBe(true);
        await store.changeRegion(id, 'eu');
        await move(home, id);
        expect(await isNew()).toBe(false);
      });

      it('that has moved: only its new owner can write its health, record starts and batches', async () => {
        const [home, eu] = [await join(null), await join('eu')];
        await take(home);
        await take(eu);
        const endpointId = await store.createEndpoint();
        const deliveryId = await accept(store, endpointId);
        await store.changeRegion(endpointId, 'eu');
        await move(home, endpointId);
        const shard = (await read(endpointId)).shard!;
        const health = [{ endpointId, breaker: OPEN_BREAKER, failingSince: null }];
        const circuit = async () =>
          (await store.queue.loadStates([endpointId])).get(endpointId)!.breaker.circuit;
        await store.queue.settle(batchOf([], { health, worker: { id: home.id, name: 'home' } }));
        expect(await circuit()).toBe('closed');
        await store.queue.settle(batchOf([], { health, worker: { id: eu.id, name: 'eu' } }));
        expect(await circuit()).toBe('open');
        const start = { ...newStart(deliveryId, endpointId), shard };
        expect(await store.queue.markStarted([start], home.id)).toEqual(new Set());
        expect(await store.queue.markStarted([start], eu.id)).toEqual(new Set([deliveryId]));
        const members = [{ deliveryId, attempts: 0 }];
        const batch = (id: Uuid, of: number) => ({ id, endpointId, shard: of, members });
        const [late, next] = [newId(), newId()];
        expect(await store.queue.recordBatches([batch(late, shardOf(endpointId))], [], home.id)).toEqual(
          new Set(),
        );
        expect(await store.queue.recordBatches([batch(next, shard)], [], eu.id)).toEqual(new Set([next]));
        await store.queue.recordBatches([], [next], home.id);
        expect(await store.queue.loadOpenBatches([endpointId])).toHaveLength(1);
        await store.queue.recordBatches([], [next], eu.id);
        expect(await store.queue.loadOpenBatches([endpointId])).toEqual([]);
      });
    });
  });
}
