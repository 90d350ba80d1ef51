import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Heap } from './heap.ts';

it('a heap returns items smallest first, however pushes and pops are mixed', () => {
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.integer({ min: -20, max: 20 })), { maxLength: 200, size: 'max' }),
      (steps) => {
        const heap = new Heap<number>((a, b) => a < b);
        let model: number[] = [];
        for (const value of steps) {
          if (value === null) {
            model = model.toSorted((a, b) => a - b);
            expect(heap.pop()).toBe(model.shift());
          } else {
            heap.push(value);
            model.push(value);
          }
          expect(heap.size).toBe(model.length);
          expect(heap.peek()).toBe(model.length === 0 ? undefined : Math.min(...model));
        }
      },
    ),
  );
});
