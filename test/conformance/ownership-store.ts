import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WIRE_VERSION } from '../../src/dispatch/ownership.ts';
import { eventIdOfDelivery, type Uuid } from '../../src/domain/ids.ts';
import { digestOf, type OwnedShard, type OwnershipSession } from '../../src/ports/ownership-store.ts';
import { eventually } from '../support/eventually.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import { accept, batchOf, HOUR_MS, newOutboxRow, newStart, OPEN_BREAKER } from './support/records.ts';

const RUNNING = { stopping: false };
const ALL_SHARDS = 256;
const DAY_MS = 24 * HOUR_MS;

interface TestWorker {
  readonly id: Uuid;
  readonly name: string;
  readonly session: OwnershipSession;
  readonly lost: unknown[];
}

export function describeOwnershipStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the ownership store in ${name}`, () => {
    let store: StoreFixture;
    let workers = 0;

    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(async () => {
      await store.clear();
      workers = 0;
    });
    afterAll(() => store?.close());

    const join = async (id: Uuid = newId()): Promise<TestWorker> => {
      workers += 1;
      const lost: unknown[] = [];
      const registration = { id, name: `w${workers}`, wireVersion: WIRE_VERSION, region: null };
      const session = await store.createOwnership().connect(registration, (error) => lost.push(error));
      return { id, name: registration.name, session, lost };
    };
    const take = ({ id, session }: TestWorker, windowMs = HOUR_MS) => session.takeShards(id, windowMs, null);
    const renew = ({ id, session }: TestWorker, options = RUNNING) =>
      session.renew(id, { ...options, known: null, listsEmptyRegions: false });
    /** All other workers, as if each had been seen with the same renewal until its lease ended. */
    const seeSilent = async (worker: TestWorker, isOverdue: boolean) =>
      (await renew(worker))!.others.map(({ id, renewal }) => ({ id, renewal, isOverdue }));
    const removeDead = async (worker: TestWorker, isOverdue = false) =>
      worker.session.removeDeadWorkers(await seeSilent(worker, isOverdue));

    it('names events whose payload was expunged while a delivery waited, with every renewal', async () => {
      const worker = await join();
      expect((await renew(worker))!.expungedEvents).toEqual([]);
      const eventId = eventIdOfDelivery(await accept(store, await store.createEndpoint()));
      await store.expunge(eventId);
      expect((await renew(worker))!.expungedEvents).toEqual([eventId]);
      expect((await renew(worker))!.expungedEvents).toEqual([eventId]);
    });

    describe('taking shards', () => {
      it('gives all shards to the only worker, each with its own epoch', async () => {
        const worker = await join();
        const taken = await take(worker);
        expect(taken.map(({ shard }) => shard).toSorted((a, b) => a - b)).toEqual([
          ...Array(ALL_SHARDS).keys(),
        ]);
        expect(new Set(taken.map(({ epoch }) => epoch)).size).toBe(ALL_SHARDS);
        expect(taken.every(({ crashes }) => crashes === 0)).toBe(true);
        const renewal = await renew(worker);
        const epochs = new Map(taken.map(({ shard, epoch }) => [shard, epoch]));
        expect(new Map(renewal!.shards!.map(({ shard, epoch }) => [shard, epoch]))).toEqual(epochs);
        expect(await take(worker)).toEqual([]);
      });

      it('never gives a shard to two workers, and no worker more than its share', async () => {
        const all = [await join(), await join(), await join()];
        const taken = await Promise.all(all.map((worker) => take(worker)));
        // Workers that take shards at the same moment may leave some for the next round.
        for (const worker of all) taken.push(await take(worker));
        const owned = await Promise.all(all.map(async (worker) => (await renew(worker))!.shards!));
        for (const shards of owned) expect(shards.length).toBeLessThanOrEqual(86);
        const shards = owned.flat().map(({ shard }) => shard);
        expect(
          taken
            .flat()
            .map(({ shard }) => shard)
            .toSorted((a, b) => a - b),
        ).toEqual(shards.toSorted((a, b) => a - b));
        expect(shards.length).toBe(ALL_SHARDS);
        expect(new Set(shards).size).toBe(ALL_SHARDS);
      });

      it('counts surplus shards when another worker joins, and gives it the shards that are released', async () => {
        const first = await join();
        const before = await take(first);
        const second = await join();
        expect(await take(second)).toEqual([]);
        expect(await first.session.countSurplusShards(first.id)).toBe(128);
        expect(await second.session.countSurplusShards(second.id)).toBe(0);
        const given = Array.from({ length: 128 }, (_, shard) => shard);
        await first.session.releaseShards(first.id, given);
        const taken = await take(second);
        expect(taken.map(({ shard }) => shard).toSorted((a, b) => a - b)).toEqual(given);
        expect(taken.every(({ crashes }) => crashes === 0)).toBe(true);
        const latest = Math.max(...before.map(({ epoch }) => epoch));
        expect(taken.every(({ epoch }) => epoch > latest)).toBe(true);
        expect(await first.session.countSurplusShards(first.id)).toBe(0);
      });

      it('gives no shards to a worker that is stopping, and does not count it for the fair share', async () => {
        const [leaving, staying] = [await join(), await join()];
        await renew(leaving, { stopping: true });
        expect(await take(leaving)).toEqual([]);
        expect(await take(staying)).toHaveLength(ALL_SHARDS);
      });

      it('gives no shards to a worker that is not registered', async () => {
        const worker = await join();
        expect(await worker.session.takeShards(newId(), HOUR_MS, null)).toEqual([]);
        expect((await renew(worker))!.shards).toEqual([]);
      });

      it('frees only shards that the worker still owns', async () => {
        const first = await join();
        await take(first);
        const second = await join();
        await second.session.releaseShards(second.id, [1, 2, 3]);
        expect((await renew(first))!.shards).toHaveLength(ALL_SHARDS);
      });
    });

    describe('a worker that dies', () => {
      it('loses its shards when its lease and its session have ended, and the shards record the crash', async () => {
        const [dead, other] = [await join(), await join()];
        const taken = await take(dead);
        expect(await removeDead(other)).toEqual([]);
        await store.breakSession(dead.id);
        const freed = await removeDead(other);
        expect(freed.map(({ worker }) => worker)).toEqual(taken.map(() => dead.name));
        expect(freed.map(({ shard }) => shard).toSorted()).toEqual(
          taken.map(({ shard }) => shard).toSorted(),
        );
        const inherited = (await take(other)).filter(({ shard }) =>
          taken.some((each) => each.shard === shard),
        );
        expect(inherited).toHaveLength(taken.length);
        expect(inherited.every(({ crashes }) => crashes === 1)).toBe(true);
      });

      it('keeps its shards while its session is alive, until it is overdue', async () => {
        const [paused, other] = [await join(), await join()];
        await take(paused);
        expect(await removeDead(other)).toEqual([]);
        expect(await removeDead(other, true)).toHaveLength(128);
        expect(await renew(paused)).toBeNull();
      });

      it('keeps its shards if it has renewed since it was seen', async () => {
        const [late, other] = [await join(), await join()];
        await take(late);
        const silent = await seeSilent(other, true);
        await renew(late);
        expect(await other.session.removeDeadWorkers(silent)).toEqual([]);
        expect(await removeDead(other, true)).toHaveLength(128);
      });

      it('keeps its shards if it has renewed since and does not count its renewals, as earlier versions do', async () => {
        const [late, other] = [await join(), await join()];
        await take(late);
        const silent = await seeSilent(other, true);
        await renew(late);
        await store.forgetRenewal(late.id);
        expect(await other.session.removeDeadWorkers(silent)).toEqual([]);
      });

      it('cannot renew late, and gets no shards back under its old id', async () => {
        const [dead, other] = [await join(), await join()];
        await take(dead);
        await removeDead(other, true);
        expect(await renew(dead)).toBeNull();
        expect(await take(dead)).toEqual([]);
        expect(await take(other)).toHaveLength(ALL_SHARDS);
      });

      it('does not see itself among the others', async () => {
        const [first, second] = [await join(), await join()];
        expect((await renew(first))!.others.map(({ id }) => id)).toEqual([second.id]);
        await store.ageWorker(second.id, HOUR_MS);
        expect((await renew(first))!.others[0]!.silentMs).toBeGreaterThanOrEqual(HOUR_MS);
      });

      it('counts as a crash of its shards during the crash window', async () => {
        for (let crashes = 0; crashes < 3; crashes += 1) {
          const worker = await join();
          const taken = await take(worker);
          expect(new Set(taken.map((shard) => shard.crashes))).toEqual(new Set([crashes]));
          const other = await join();
          await removeDead(other, true);
          await other.session.unregister(other.id);
        }
        const last = await join();
        const taken = await take(last, 0);
        expect(new Set(taken.map(({ crashes }) => crashes))).toEqual(new Set([0]));
      });

      it('does not count as a crash if it unregistered before', async () => {
        const [leaving, other] = [await join(), await join()];
        await take(leaving);
        await leaving.session.unregister(leaving.id);
        expect(await renew(leaving)).toBeNull();
        expect(await removeDead(other, true)).toEqual([]);
        const taken = await take(other);
        expect(taken).toHaveLength(ALL_SHARDS);
        expect(taken.every(({ crashes }) => crashes === 0)).toBe(true);
      });
    });

    describe('when the clock steps back by 40 days', () => {
      it('a dead worker loses its shards after its lease, not after 40 days', async () => {
        const [dead, other] = [await join(), await join()];
        await take(dead);
        await store.breakSession(dead.id);
        await store.stepClockBack(40 * DAY_MS);
        expect(await removeDead(other)).toHaveLength(128);
        expect(await take(other)).toHaveLength(ALL_SHARDS);
      });

      it('a living worker keeps its shards', async () => {
        const [living, other] = [await join(), await join()];
        await take(living);
        const silent = await seeSilent(other, true);
        await store.stepClockBack(40 * DAY_MS);
        await renew(living);
        expect(await other.session.removeDeadWorkers(silent)).toEqual([]);
        expect((await renew(living))!.shards).toHaveLength(128);
      });

      it('crashes that were recorded before the step do not count while their times lie in the future', async () => {
        const dead = await join();
        await take(dead);
        const other = await join();
        await removeDead(other, true);
        await store.stepClockBack(40 * DAY_MS);
        const taken = await take(other);
        expect(new Set(taken.map(({ crashes }) => crashes))).toEqual(new Set([0]));
      });
    });

    describe('a session', () => {
      it('calls onLost once when it breaks, refuses further calls, and can be replaced under the same worker id', async () => {
        const worker = await join();
        await take(worker);
        await store.breakSession(worker.id);
        await eventually('onLost is called', () => worker.lost.length > 0);
        await expect(renew(worker)).rejects.toThrow();
        expect(worker.lost).toHaveLength(1);
        const again = await join(worker.id);
        expect((await renew(again))!.shards).toHaveLength(ALL_SHARDS);
        const other = await join();
        expect(await removeDead(other)).toEqual([]);
      });

      it('does not renew the lease by connecting again', async () => {
        const worker = await join();
        await take(worker);
        const other = await join();
        const silent = await seeSilent(other, true);
        await join(worker.id);
        expect(await other.session.removeDeadWorkers(silent)).toHaveLength(ALL_SHARDS);
      });

      it('releases its lock when it is closed, without a call to onLost', async () => {
        const [closing, other] = [await join(), await join()];
        await take(closing);
        closing.session.close();
        await eventually('its lock is released', async () => (await removeDead(other)).length > 0);
        expect(closing.lost).toEqual([]);
      });
    });

    describe('facts', () => {
      it('are returned by a renewal, and can be read without one', async () => {
        const worker = await join();
        const ownership = store.createOwnership();
        const before = await ownership.readFacts();
        const endpointId = await store.createEndpoint();
        await accept(store, endpointId);
        await accept(store, endpointId);
        for (let rows = 0; rows < 2; rows += 1) await store.publish(newOutboxRow());
        const renewal = (await renew(worker))!;
        const facts = await ownership.readFacts();
        const { endpointVersion, lastSeq, outboxSeq } = renewal;
        expect({ endpointVersion, lastSeq, outboxSeq }).toEqual({
          endpointVersion: facts.endpointVersion,
          lastSeq: facts.lastSeq,
          outboxSeq: facts.outboxSeq,
        });
        expect(endpointVersion).toBe(await store.endpointVersion());
        expect(endpointVersion).toBeGreaterThan(before.endpointVersion);
        expect(lastSeq).toBeGreaterThan(before.lastSeq);
        expect(outboxSeq).toBeGreaterThan(before.outboxSeq);
        const lane = await store.queue.loadLanes([{ endpointId, freshAfter: 0, dueFrom: null, limit: 9 }]);
        expect(lane.get(endpointId)!.fresh.at(-1)!.seq).toBe(lastSeq);
        for (const { now } of [renewal, facts]) expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
      });
    });

    describe('the shards of a renewal', () => {
      it('are left out while the worker knows them', async () => {
        const worker = await join();
        const renewKnowing = (shards: readonly OwnedShard[]) => {
          const known = digestOf(shards.map(({ epoch }) => epoch));
          return worker.session.renew(worker.id, { ...RUNNING, known, listsEmptyRegions: false });
        };
        expect((await renewKnowing([]))!.shards).toBeNull();
        const taken = await take(worker);
        expect((await renewKnowing([]))!.shards).toHaveLength(ALL_SHARDS);
        expect((await renewKnowing(taken.slice(1)))!.shards).toHaveLength(ALL_SHARDS);
        expect((await renewKnowing(taken))!.shards).toBeNull();
        await worker.session.releaseShards(worker.id, [7]);
        expect((await renewKnowing(taken))!.shards).toHaveLength(ALL_SHARDS - 1);
        // The same shard under a new epoch.
        await take(worker);
        expect((await renewKnowing(taken))!.shards).toHaveLength(ALL_SHARDS);
      });
    });

    describe('a renewal is balanced', () => {
      const isBalanced = async (worker: TestWorker): Promise<boolean> => (await renew(worker))!.isBalanced;

      it('once the only worker has all shards', async () => {
        const worker = await join();
        expect(await isBalanced(worker)).toBe(false);
        await take(worker);
        expect(await isBalanced(worker)).toBe(true);
        await worker.session.releaseShards(worker.id, [7]);
        expect(await isBalanced(worker)).toBe(false);
      });

      it('only for the worker that has no surplus', async () => {
        const first = await join();
        await take(first);
        const second = await join();
        expect(await isBalanced(first)).toBe(false);
        expect(await isBalanced(second)).toBe(true);
      });
    });

    describe('the mark of a renewal', () => {
      it('is found by the next one, unless the store went back to an earlier state', async () => {
        const worker = await join();
        const first = (await renew(worker))!;
        const second = (await renew(worker))!;
        expect(second.previousMark).toBe(first.mark);
        await store.ageWorker(worker.id, 1);
        const third = (await renew(worker))!;
        expect(third.previousMark).toBe(second.mark);
        await store.forgetRenewal(worker.id);
        expect((await renew(worker))!.previousMark).toBeLessThan(third.mark);
      });
    });

    describe('a worker that lost its shard', () => {
      it('can neither record a start nor write the health of an endpoint', async () => {
        const worker = await join();
        await take(worker);
        const endpointId = await store.createEndpoint();
        const id = await accept(store, endpointId);
        const next = await join();
        await removeDead(next, true);
        await take(next);
        expect(await store.queue.markStarted([newStart(id, endpointId)], worker.id)).toEqual(new Set());
        const health = [{ endpointId, breaker: OPEN_BREAKER, failingSince: null }];
        await store.queue.settle(batchOf([], { health, worker: { id: worker.id, name: worker.name } }));
        const stateOf = async () => (await store.queue.loadStates([endpointId])).get(endpointId)!;
        expect((await stateOf()).breaker.circuit).toBe('closed');
        expect((await stateOf()).isNew).toBe(false);
        expect(await store.queue.markStarted([newStart(id, endpointId)], next.id)).toEqual(new Set([id]));
      });
    });
  });
}
