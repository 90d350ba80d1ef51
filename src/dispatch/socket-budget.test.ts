import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kind } from './lane.ts';
import { SocketBudget } from './socket-budget.ts';

const fill = (budget: SocketBudget, kind: Kind): void => {
  while (budget.hasFree(kind)) budget.inFlight[kind] += 1;
};

describe('DSP-5: the socket budget', () => {
  it('limits retries to their share and leaves the rest to fresh deliveries', () => {
    const budget = new SocketBudget(100, 0.4);
    fill(budget, 'retry');
    expect(budget.inFlight.retry).toBe(40);
    expect(budget.hasFree('fresh')).toBe(true);
    fill(budget, 'fresh');
    expect(budget.inFlight.fresh).toBe(60);
  });

  it('leaves a tenth to retries, however many fresh deliveries there are', () => {
    const budget = new SocketBudget(100, 0.4);
    fill(budget, 'fresh');
    expect(budget.inFlight.fresh).toBe(90);
    expect(budget.hasFree('retry')).toBe(true);
  });

  it('is crowded when only the last quarter is left', () => {
    const budget = new SocketBudget(100, 0.4);
    budget.inFlight.fresh = 74;
    expect(budget.isCrowded).toBe(false);
    budget.inFlight.retry = 1;
    expect(budget.isCrowded).toBe(true);
  });

  it('never exceeds the number of sockets, and gives each kind at least one', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        fc.array(fc.record({ kind: fc.constantFrom<Kind>('fresh', 'retry'), start: fc.boolean() })),
        (max, share, steps) => {
          const budget = new SocketBudget(max, share);
          expect(budget.hasFree('fresh') && budget.hasFree('retry')).toBe(true);
          for (const { kind, start } of steps) {
            if (start && budget.hasFree(kind)) budget.inFlight[kind] += 1;
            else if (!start && budget.inFlight[kind] > 0) budget.inFlight[kind] -= 1;
            expect(budget.total).toBeLessThanOrEqual(max);
            expect(budget.inFlight.retry).toBeLessThanOrEqual(Math.max(1, max * share));
          }
        },
      ),
    );
  });
});
