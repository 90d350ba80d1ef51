import { expect, it } from 'vitest';
import { memoryDeduplicator } from '../src/index.ts';
import { deduplicatorSuite } from './testing/deduplicator-suite.ts';

deduplicatorSuite('memoryDeduplicator', () => memoryDeduplicator());

it('memoryDeduplicator drops receipts after rememberSeconds', async () => {
  let now = 0;
  const receipts = memoryDeduplicator({ rememberSeconds: 10, now: () => now });
  const key = { subscriber: 'a', eventId: 'b' };
  await receipts.once(key, () => 1);
  now = 9_999;
  expect(await receipts.once(key, () => 2)).toEqual({ status: 'duplicate' });
  now = 10_000;
  expect(await receipts.once(key, () => 3)).toEqual({ status: 'handled', result: 3 });
});

it('memoryDeduplicator keeps at most maxEntries receipts, and drops the oldest first', async () => {
  const receipts = memoryDeduplicator({ maxEntries: 100 });
  for (let n = 0; n < 1000; n += 1) await receipts.once({ subscriber: 'a', eventId: `${n}` }, () => n);
  expect(receipts.size).toBe(100);
  expect(await receipts.once({ subscriber: 'a', eventId: '999' }, () => 1)).toEqual({ status: 'duplicate' });
  expect(await receipts.once({ subscriber: 'a', eventId: '1' }, () => 1)).toMatchObject({
    status: 'handled',
  });
});
