import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { StoreError } from '../ports/store-error.ts';
import { PartitionDrops } from './drop-partitions.ts';

test('LIF-1: a copy that times out is halved, and stays small', async () => {
  const sizes: number[] = [];
  const drops = new PartitionDrops({
    store: {
      findExpired: async () => null,
      findReplacement: async (table) =>
        table === 'events' ? { name: 'events_kept', table, isCopied: false } : null,
      prepare: () => Promise.reject(new Error('nothing has expired')),
      copy: async (_replacement, after, maxRows) => {
        sizes.push(maxRows);
        if (maxRows > 1_250) throw new StoreError('timeout', 'too slow');
        return after === null ? newId(Date.now()) : null;
      },
      swap: async () => true,
      dropDetached: async () => [],
      cleanReplacements: async () => 0,
    },
    clock: systemClock,
    days: { events: 0, deliveries: 0, attempts: 0 },
    onDropped: () => {},
  });
  await drops.run(() => false);
  expect(sizes).toEqual([5_000, 2_500, 1_250, 1_250]);
});
