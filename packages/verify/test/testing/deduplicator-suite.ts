/** What every Deduplicator must do. Run against each implementation. */
import { describe, expect, it } from 'vitest';
import type { Deduplicator } from '../../src/index.ts';

export function deduplicatorSuite(name: string, create: () => Deduplicator): void {
  let events = 0;
  const newKey = (subscriber = 'billing') => {
    events += 1;
    return { subscriber, eventId: `evt_${events}` };
  };

  describe(name, () => {
    it('runs the handler, then never again for the same event', async () => {
      const receipts = create();
      const key = newKey();
      expect(await receipts.once(key, async () => 'done')).toEqual({ status: 'handled', result: 'done' });
      for (let n = 0; n < 3; n += 1)
        expect(await receipts.once(key, () => expect.unreachable())).toEqual({ status: 'duplicate' });
    });

    it('each subscriber has events of its own', async () => {
      const receipts = create();
      const { eventId } = newKey();
      for (const subscriber of ['billing', 'mail', '']) {
        const result = await receipts.once({ subscriber, eventId }, () => subscriber);
        expect(result).toEqual({ status: 'handled', result: subscriber });
      }
    });

    it('names cannot be confused, however they are cut', async () => {
      const receipts = create();
      for (const [subscriber, eventId] of [
        ['a', 'b:c'],
        ['a:b', 'c'],
        ['a","b', 'c'],
        ["'; drop table webhook_receipts; --", 'c'],
      ] as const)
        expect(await receipts.once({ subscriber, eventId }, () => 1)).toMatchObject({ status: 'handled' });
    });

    it('a handler that fails is recorded as nothing: the next one runs', async () => {
      const receipts = create();
      const key = newKey();
      const failing = receipts.once(key, async () => {
        throw new Error('no stock');
      });
      await expect(failing).rejects.toThrow('no stock');
      await expect(
        receipts.once(key, () => {
          throw new Error('still none');
        }),
      ).rejects.toThrow('still none');
      expect(await receipts.once(key, () => 'stock')).toEqual({ status: 'handled', result: 'stock' });
    });

    it('of many at the same time one runs; the others are told that it does', async () => {
      const receipts = create();
      const key = newKey();
      let runs = 0;
      const held = Promise.withResolvers<void>();
      const told: string[] = [];
      const all = Array.from({ length: 20 }, async () => {
        const { status } = await receipts.once(key, () => {
          runs += 1;
          return held.promise;
        });
        told.push(status);
      });
      await expect.poll(() => told.length, { timeout: 5000 }).toBe(19);
      expect(new Set(told)).toEqual(new Set(['in_progress']));
      held.resolve();
      await Promise.all(all);
      expect([runs, told.at(-1)]).toEqual([1, 'handled']);
      expect(await receipts.once(key, () => 2)).toEqual({ status: 'duplicate' });
    });

    it('if the first one fails, the one after it gets its turn', async () => {
      const receipts = create();
      const key = newKey();
      const started = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      const first = receipts.once(key, () => {
        started.resolve();
        return end.promise;
      });
      await started.promise;
      expect(await receipts.once(key, () => 'too early')).toEqual({ status: 'in_progress' });
      end.reject(new Error('later'));
      await expect(first).rejects.toThrow('later');
      expect(await receipts.once(key, () => 'mine')).toEqual({ status: 'handled', result: 'mine' });
    });
  });
}
