import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Batcher } from './batcher.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A batcher whose writes end when the test says so. */
function manual(limits: { maxItems: number; maxBytes: number }) {
  const batches: number[][] = [];
  const open: (() => void)[] = [];
  const batcher = new Batcher<number>({
    ...limits,
    bytesOf: (item) => item,
    write: (batch) => {
      batches.push([...batch]);
      return new Promise<void>((resolve) => open.push(resolve));
    },
  });
  return { batcher, batches, open, endOne: () => open.shift()?.() };
}

describe('a batcher', () => {
  it('writes what was added while the previous batch was being written', async () => {
    const { batcher, batches, endOne } = manual({ maxItems: 100, maxBytes: 1000 });
    batcher.add(1);
    batcher.add(2);
    await turn();
    expect(batches).toEqual([[1, 2]]);
    for (const item of [3, 4, 5]) batcher.add(item);
    await turn();
    expect(batches).toHaveLength(1);
    expect(batcher.waitingItems).toBe(3);
    expect(batcher.waitingBytes).toBe(12);
    endOne();
    await turn();
    await turn();
    expect(batches).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
    expect(batcher.waitingBytes).toBe(0);
  });

  it('writes an item that is larger than the limit in a batch of its own', async () => {
    const { batcher, batches, endOne } = manual({ maxItems: 100, maxBytes: 10 });
    for (const item of [4, 50, 4, 4, 4]) batcher.add(item);
    for (let i = 0; i < 10; i += 1) {
      await turn();
      endOne();
    }
    expect(batches).toEqual([[4], [50], [4, 4], [4]]);
  });

  it('waitUntilIdle resolves when no item waits and none is being written', async () => {
    const { batcher, endOne } = manual({ maxItems: 1, maxBytes: 1000 });
    await batcher.waitUntilIdle();
    let isIdle = false;
    batcher.add(1);
    batcher.add(2);
    const end = batcher.waitUntilIdle().then(() => {
      isIdle = true;
    });
    await turn();
    endOne();
    await turn();
    await turn();
    expect(isIdle).toBe(false);
    endOne();
    await end;
    expect(isIdle).toBe(true);
  });

  it('keeps the order and the limits, and writes one batch at a time, for any timing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          maxItems: fc.integer({ min: 1, max: 5 }),
          maxBytes: fc.integer({ min: 1, max: 20 }),
        }),
        fc.array(
          fc.oneof(fc.integer({ min: 0, max: 25 }), fc.constantFrom('end' as const, 'turn' as const)),
          {
            maxLength: 40,
            size: 'max',
          },
        ),
        async (limits, steps) => {
          const { batcher, batches, open, endOne } = manual(limits);
          const added: number[] = [];
          for (const step of steps) {
            if (step === 'turn') await turn();
            else if (step === 'end') endOne();
            else {
              batcher.add(step);
              added.push(step);
            }
            expect(open.length).toBeLessThanOrEqual(1);
          }
          const idle = batcher.waitUntilIdle();
          for (let i = 0; i < 100; i += 1) {
            await turn();
            expect(open.length).toBeLessThanOrEqual(1);
            endOne();
          }
          await idle;
          expect(batches.flat()).toEqual(added);
          for (const batch of batches) {
            expect(batch.length).toBeLessThanOrEqual(limits.maxItems);
            const bytes = batch.reduce((sum, item) => sum + item, 0);
            if (batch.length > 1) expect(bytes).toBeLessThanOrEqual(limits.maxBytes);
          }
          expect([batcher.waitingItems, batcher.waitingBytes]).toEqual([0, 0]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
