import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane } from './lane.ts';
import { Turns } from './turns.ts';

const lane = (tenant: string, name: string | number): Lane =>
  ({ endpoint: { tenant }, name }) as unknown as Lane;

describe('DSP-9: turns', () => {
  it('alternate between a tenant with a thousand lanes and one with a single lane', () => {
    const turns = new Turns();
    const small = lane('small', 0);
    for (let i = 0; i < 1_000; i += 1) turns.add(lane('big', i));
    turns.add(small);
    const order: string[] = [];
    for (let i = 0; i < 100; i += 1) {
      const next = turns.next()!;
      order.push(next.endpoint.tenant);
      turns.add(next);
    }
    expect(order).toEqual(Array.from({ length: 50 }, () => ['big', 'small']).flat());
  });

  it('give every lane of a tenant a turn before one gets its second', () => {
    const turns = new Turns();
    const lanes = Array.from({ length: 50 }, (_, i) => lane('a', i));
    for (const one of lanes) turns.add(one);
    const seen = new Set<Lane>();
    for (let i = 0; i < 50; i += 1) {
      const next = turns.next()!;
      seen.add(next);
      turns.add(next);
    }
    expect(seen.size).toBe(50);
  });

  it('hold each lane once and lose none', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            what: fc.constantFrom('add', 'remove', 'next'),
            which: fc.integer({ min: 0, max: 11 }),
          }),
          { maxLength: 200, size: 'max' },
        ),
        (steps) => {
          const turns = new Turns();
          const lanes = Array.from({ length: 12 }, (_, i) => lane(`t${i % 4}`, i));
          const model = new Set<Lane>();
          for (const { what, which } of steps) {
            const one = lanes[which]!;
            if (what === 'add') {
              turns.add(one);
              model.add(one);
            } else if (what === 'remove') {
              turns.remove(one);
              model.delete(one);
            } else {
              const next = turns.next();
              if (model.size === 0) expect(next).toBeUndefined();
              else expect(model.delete(next!)).toBe(true);
            }
            expect(turns.isEmpty).toBe(model.size === 0);
          }
        },
      ),
    );
  });

  it('let no tenant wait for more turns than there are tenants', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 8 }), (sizes) => {
        const turns = new Turns();
        for (const [tenant, size] of sizes.entries())
          for (let i = 0; i < size; i += 1) turns.add(lane(`t${tenant}`, i));
        const last = new Map(sizes.map((_, tenant) => [`t${tenant}`, 0]));
        for (let i = 1; i <= 200; i += 1) {
          const next = turns.next()!;
          turns.add(next);
          last.set(next.endpoint.tenant, i);
          for (const at of last.values()) expect(i - at).toBeLessThanOrEqual(sizes.length);
        }
      }),
    );
  });

  it('cost the same with 100,000 lanes of 10,000 tenants as with a few: a turn looks at one lane', () => {
    const turns = new Turns();
    let looks = 0;
    for (let i = 0; i < 100_000; i += 1) {
      const endpoint = { tenant: `t${i % 10_000}` };
      const counting = {
        get endpoint() {
          looks += 1;
          return endpoint;
        },
      };
      turns.add(counting as unknown as Lane);
    }
    looks = 0;
    for (let i = 0; i < 1_000; i += 1) turns.add(turns.next()!);
    expect(looks).toBeLessThanOrEqual(1_000);
  });
});
