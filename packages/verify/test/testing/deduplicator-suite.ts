/** The conformance suite of `Deduplicator`, run for every implementation. */
import { describe, expect, it } from 'vitest';
import type { Deduplicator } from '../../src/index.ts';

export function deduplicatorSuite(name: string, create: () => Deduplicator): void {
  let eventCount = 0;
  const createKey = () => {
    eventCount += 1;
    return { subscriber: 'billing', eventId: `evt_${eventCount}` };
  };

  describe(name, () => {
    it('runs the handler once per event', async () => {
      const receipts = create();
      const key = createKey();
      expect(await receipts.once(key, async () => 'done')).toEqual({ status: 'handled', result: 'done' });
      for (let n = 0; n < 3; n += 1)
        expect(await receipts.once(key, () => expect.unreachable())).toEqual({ status: 'duplicate' });
    });

    it('runs the handler once per subscriber', async () => {
      const receipts = create();
      const { eventId } = createKey();
      for (const subscriber of ['billing', 'mail', '']) {
        const result = await receipts.once({ subscriber, eventId }, () => subscriber);
        expect(result).toEqual({ status: 'handled', result: subscriber });
      }
    });

    it('does not confuse names with special characters', async () => {
      const receipts = create();
      for (const [subscriber, eventId] of [
        ['a', 'b:c'],
        ['a:b', 'c'],
        ['a","b', 'c'],
        ["'; drop table webhook_receipts; --", 'c'],
      ] as const)
        expect(await receipts.once({ subscriber, eventId }, () => 1)).toMatchObject({ status: 'handled' });
    });

    it('runs the handler again after it failed', async () => {
      const receipts = create();
      const key = createKey();
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

    it('runs one of many concurrent handlers, and reports in_progress to the others', async () => {
      const receipts = create();
      const key = createKey();
      let runs = 0;
      const end = Promise.withResolvers<void>();
      const statuses: string[] = [];
      const all = Array.from({ length: 20 }, async () => {
        const { status } = await receipts.once(key, () => {
          runs += 1;
          return end.promise;
        });
        statuses.push(status);
      });
      await expect.poll(() => statuses.length, { timeout: 5000 }).toBe(19);
      expect(new Set(statuses)).toEqual(new Set(['in_progress']));
      end.resolve();
      await Promise.all(all);
      expect([runs, statuses.at(-1)]).toEqual([1, 'handled']);
      expect(await receipts.once(key, () => 2)).toEqual({ status: 'duplicate' });
    });

    it('lets the next caller run the handler after a concurrent one failed', async () => {
      const receipts = create();
      const key = createKey();
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
