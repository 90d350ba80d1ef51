import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventIdOfDelivery, type Uuid } from '../../src/domain/ids.ts';
import type { CreateStoreFixture, StoreFixture } from './support/fixture.ts';
import { newId } from './support/ids.ts';
import { accept, batchOf, DEAD, DELIVERED, HOUR_MS, loadAll, newSettlement } from './support/records.ts';

export function describeTaskStore(name: string, createFixture: CreateStoreFixture): void {
  describe(`the task store in ${name}`, () => {
    let store: StoreFixture;
    let endpointId: Uuid;
    beforeAll(async () => {
      store = await createFixture();
    });
    beforeEach(async () => {
      await store.clear();
      endpointId = await store.createEndpoint();
    });
    afterAll(() => store?.close());

    const acceptDead = async (count: number, to = endpointId): Promise<Uuid[]> => {
      const ids: Uuid[] = [];
      for (let i = 0; i < count; i += 1) ids.push(await accept(store, to));
      await store.queue.settle(batchOf(ids.map((id) => newSettlement(id, to, DEAD))));
      return ids;
    };
    const newRunner = (): Uuid => newId();
    const claim = async (runner = newRunner()) => (await store.tasks.claim(runner, HOUR_MS))!;
    const waitingIds = async () => (await loadAll(store, endpointId)).due.map(({ id }) => id).toSorted();

    it('replays everything that was dead when the task was created, chunk by chunk', async () => {
      const ids = await acceptDead(5);
      const id = await store.createTask({ kind: 'replay', selection: {} });
      const later = await acceptDead(1);
      const task = await claim();
      expect(task.id).toBe(id);
      expect(await store.tasks.runChunk(task, 2)).toEqual({
        isRunning: true,
        isWaiting: false,
        endpointIds: [endpointId],
      });
      expect(await waitingIds()).toEqual(ids.slice(0, 2));
      expect(await store.tasks.runChunk(task, 2)).toMatchObject({ isRunning: true });
      expect(await store.tasks.runChunk(task, 2)).toMatchObject({ isRunning: false });
      expect(await waitingIds()).toEqual(ids);
      expect(await store.findTask(id)).toMatchObject({ state: 'done', total: 5, done: 5, failed: 0 });
      expect(await store.findDelivery(later[0]!)).toMatchObject({ status: 'dead' });
    });

    it('discards dead letters, and leaves those that are being replayed', async () => {
      const ids = await acceptDead(3);
      await store.queue.replay([{ id: ids[0]!, endpointId }]);
      const id = await store.createTask({ kind: 'discard', selection: {} });
      expect(await store.tasks.runChunk(await claim(), 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [endpointId],
      });
      expect(await store.findTask(id)).toMatchObject({ state: 'done', total: 2, done: 2, failed: 0 });
      expect(await store.findDelivery(ids[0]!)).toMatchObject({ status: 'waiting' });
      expect(await store.findDelivery(ids[1]!)).toMatchObject({ status: 'discarded', reason: 'test' });
    });

    it('works on the selected deliveries only', async () => {
      const other = await store.createEndpoint();
      const [wanted, unwanted] = [await acceptDead(2), await acceptDead(2, other)];
      const delivered = await accept(store, endpointId);
      await store.queue.settle(batchOf([newSettlement(delivered, endpointId, DELIVERED)]));
      const selection = {
        endpointId,
        statuses: ['dead', 'delivered'] as const,
        ids: [wanted[1]!, delivered],
      };
      await store.createTask({ kind: 'replay', selection });
      await store.tasks.runChunk(await claim(), 10);
      expect(await waitingIds()).toEqual([wanted[1]!, delivered].toSorted());
      for (const id of [wanted[0]!, ...unwanted])
        expect(await store.findDelivery(id)).toMatchObject({ status: 'dead' });
    });

    it('works on the deliveries of one event only', async () => {
      const [wanted, other] = await acceptDead(2);
      const selection = { statuses: ['dead'] as const, eventId: eventIdOfDelivery(wanted!) };
      await store.createTask({ kind: 'replay', selection });
      await store.tasks.runChunk(await claim(), 10);
      expect(await waitingIds()).toEqual([wanted]);
      expect(await store.findDelivery(other!)).toMatchObject({ status: 'dead' });
    });

    it('counts deliveries of a disabled endpoint as failed', async () => {
      await acceptDead(2);
      const id = await store.createTask({ kind: 'replay', selection: {} });
      await store.setEnabled(endpointId, false);
      expect(await store.tasks.runChunk(await claim(), 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [],
      });
      expect(await store.findTask(id)).toMatchObject({ state: 'done', total: 2, done: 0, failed: 2 });
    });

    it('gives each task to one runner only', async () => {
      const ids = [
        await store.createTask({ kind: 'replay', selection: {} }),
        await store.createTask({ kind: 'replay', selection: {} }),
      ];
      const claimed = await Promise.all(
        Array.from({ length: 4 }, () => store.tasks.claim(newRunner(), HOUR_MS)),
      );
      const got = claimed.flatMap((task) => (task === null ? [] : [task.id]));
      expect(new Set(got).size).toBe(got.length);
      for (let task = await store.tasks.claim(newRunner(), HOUR_MS); task !== null; ) {
        got.push(task.id);
        task = await store.tasks.claim(newRunner(), HOUR_MS);
      }
      expect(got.toSorted()).toEqual(ids.toSorted());
    });

    it('gives the task of a silent runner to another one; later chunks of the first do nothing', async () => {
      await acceptDead(3);
      await store.createTask({ kind: 'replay', selection: {} });
      const silent = await claim();
      await store.tasks.runChunk(silent, 1);
      const next = (await store.tasks.claim(newRunner(), -1_000))!;
      expect(next.id).toBe(silent.id);
      const before = await store.findTask(next.id);
      expect(await store.tasks.runChunk(silent, 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [],
      });
      await store.tasks.fail(silent, 'late');
      await store.tasks.release(silent);
      expect(await store.findTask(next.id)).toEqual(before);
      expect(await store.tasks.claim(newRunner(), HOUR_MS)).toBeNull();
      expect(await store.tasks.runChunk(next, 10)).toMatchObject({ isRunning: false });
      expect(await store.findTask(next.id)).toMatchObject({ state: 'done', done: 3 });
    });

    it('takes a task from a runner whose heartbeat lies in the future, because the clock stepped back by 40 days', async () => {
      await acceptDead(2);
      await store.createTask({ kind: 'replay', selection: {} });
      const dead = await claim();
      await store.tasks.runChunk(dead, 1);
      expect(await store.tasks.claim(newRunner(), HOUR_MS)).toBeNull();
      await store.stepClockBack(40 * 24 * HOUR_MS);
      const next = await claim();
      expect(next?.id).toBe(dead.id);
      expect(await store.tasks.runChunk(dead, 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [],
      });
      expect(await store.tasks.claim(newRunner(), HOUR_MS)).toBeNull();
    });

    it('continues after the last chunk when another runner takes the task over', async () => {
      const ids = await acceptDead(4);
      await store.createTask({ kind: 'replay', selection: {} });
      const first = await claim();
      await store.tasks.runChunk(first, 3);
      await store.tasks.release(first);
      const second = await claim();
      expect(second.id).toBe(first.id);
      expect(await store.tasks.runChunk(second, 3)).toMatchObject({ isRunning: false });
      expect(await waitingIds()).toEqual(ids);
      expect(await store.findTask(first.id)).toMatchObject({ state: 'done', done: 4, total: 4 });
    });

    it('counts each delivery once if a chunk is repeated after a lost answer', async () => {
      const ids = await acceptDead(4);
      const id = await store.createTask({ kind: 'replay', selection: {} });
      const task = (await store.unreliable.tasks.claim(newRunner(), HOUR_MS))!;
      await store.unreliable.loseNextAnswer();
      await expect(store.unreliable.tasks.runChunk(task, 3)).rejects.toMatchObject({
        failure: 'outcome_unknown',
      });
      // The commit may or may not have reached the store: either way the next chunks do the rest.
      for (let isRunning = true; isRunning; )
        ({ isRunning } = await store.unreliable.tasks.runChunk(task, 3));
      expect(await waitingIds()).toEqual(ids);
      expect(await store.findTask(id)).toMatchObject({ state: 'done', done: 4, failed: 0 });
    });

    it('gives out a released task after the tasks that have waited longer', async () => {
      const first = await store.createTask({ kind: 'replay', selection: {} });
      const second = await store.createTask({ kind: 'replay', selection: {} });
      const claimed = await claim();
      expect(claimed.id).toBe(first);
      await store.tasks.release(claimed);
      expect((await claim()).id).toBe(second);
      expect((await claim()).id).toBe(first);
    });

    it('lets tenants take turns: a task waits for one turn of another tenant, however many tasks that has', async () => {
      const create = (tenant: string) => store.createTask({ kind: 'replay', selection: { tenant } });
      const ofBusy = [await create('busy'), await create('busy'), await create('busy')];
      const ofOther = [await create('other'), await create('other')];
      const turns: Uuid[] = [];
      for (let turn = 0; turn < 5; turn += 1) {
        const task = await claim();
        turns.push(task.id);
        await store.tasks.runChunk(task, 10);
      }
      expect(turns).toEqual([ofBusy[0], ofOther[0], ofBusy[1], ofOther[1], ofBusy[2]]);
    });

    it('does not forget the turn of a tenant that cancels tasks before their turn', async () => {
      const create = (tenant: string) => store.createTask({ kind: 'replay', selection: { tenant } });
      const ofOther = await create('other');
      await store.tasks.runChunk(await claim(), 10);
      expect(await store.findTask(ofOther)).toMatchObject({ state: 'done' });
      await create('busy');
      await store.tasks.runChunk(await claim(), 10);
      for (let n = 0; n < 25; n += 1) await store.cancelTask(await create('busy'));
      await create('busy');
      const next = await create('other');
      expect((await claim()).id).toBe(next);
    });

    it('does nothing for a task that was cancelled', async () => {
      const ids = await acceptDead(2);
      const id = await store.createTask({ kind: 'replay', selection: {} });
      const task = await claim();
      await store.cancelTask(id);
      expect(await store.tasks.runChunk(task, 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [],
      });
      expect(await store.findDelivery(ids[0]!)).toMatchObject({ status: 'dead' });
      expect(await store.tasks.claim(newRunner(), -1_000)).toBeNull();
    });

    it('does nothing for a task that has ended', async () => {
      await acceptDead(1);
      const id = await store.createTask({ kind: 'replay', selection: {} });
      const task = await claim();
      await store.tasks.runChunk(task, 10);
      expect(await store.tasks.runChunk(task, 10)).toEqual({
        isRunning: false,
        isWaiting: false,
        endpointIds: [],
      });
      await store.tasks.fail(task, 'late');
      expect(await store.findTask(id)).toMatchObject({ state: 'done', done: 1, error: null });
    });

    it('stores the reason of a failed task, and does not give it to another runner', async () => {
      const id = await store.createTask({ kind: 'replay', selection: {} });
      await store.tasks.fail(await claim(), 'no luck');
      expect(await store.findTask(id)).toMatchObject({ state: 'failed', error: 'no luck' });
      expect(await store.tasks.claim(newRunner(), -1_000)).toBeNull();
    });
  });
}
