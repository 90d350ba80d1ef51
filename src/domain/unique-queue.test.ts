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
});
