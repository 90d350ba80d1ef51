import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UniqueQueue } from './unique-queue.ts';

describe('a queue that holds each value once', () => {
  it('behaves like a Set that is read from its beginning', () => {
    const step = fc.record({
      what: fc.constantFrom('add', 'delete', 'shift', 'clear'),
      value: fc.integer({ min: 0, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const queue = new UniqueQueue<number>();
        const model = new Set<number>();
        for (const { what, value } of steps) {
          if (what === 'add') {
            queue.add(value);
            model.add(value);
          } else if (what === 'delete') {
            expect(queue.delete(value)).toBe(model.delete(value));
          } else if (what === 'shift') {
            const [first] = model;
            expect(queue.shift()).toBe(first);
            model.delete(first!);
          } else if (value === 0) {
            queue.clear();
            model.clear();
          }
          expect(queue.size).toBe(model.size);
          expect(queue.has(value)).toBe(model.has(value));
        }
      }),
    );
  });

  it('takes as long with 100,000 values as with 1,000', () => {
    const queueOf = (size: number): UniqueQueue<number> => {
      const queue = new UniqueQueue<number>();
      for (let value = 0; value < size; value += 1) queue.add(value);
      return queue;
    };
    const [small, large] = [queueOf(1_000), queueOf(100_000)];
    /** The shortest of several measurements, because others use the processor too. */
    const measure = (queue: UniqueQueue<number>): number => {
      let shortest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 20; round += 1) {
        const startedAt = performance.now();
        for (let i = 0; i < 2_000; i += 1) queue.add(queue.shift()!);
        shortest = Math.min(shortest, performance.now() - startedAt);
      }
      return shortest;
    };
    measure(small);
    // A scan would take a hundred times as long.
    expect(measure(large)).toBeLessThan(20 * measure(small));
  });
});
