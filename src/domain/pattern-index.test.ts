import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesType } from './event.ts';
import { PatternIndex } from './pattern-index.ts';

const segment = fc.constantFrom('order', 'item', 'added', 'posthorn', 'a');
const type = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('.'));
const pattern = fc.oneof(
  fc.constant('*'),
  type,
  type.map((text) => `${text}.*`),
);
const subscription = fc.record({ pattern, value: fc.integer({ min: 0, max: 5 }) });

describe('the pattern index', () => {
  test('matches exactly what matchesType matches, each value once', () => {
    fc.assert(
      fc.property(fc.array(subscription, { maxLength: 30 }), type, (subscriptions, event) => {
        const index = new PatternIndex<number>();
        for (const { pattern, value } of subscriptions) index.add(pattern, value);
        const expected = subscriptions.filter((each) => matchesType(each.pattern, event));
        const matched = index.match(event);
        expect(new Set(matched)).toEqual(new Set(expected.map(({ value }) => value)));
        expect(matched).toHaveLength(new Set(matched).size);
      }),
    );
  });

  test('is empty again after everything was removed', () => {
    fc.assert(
      fc.property(fc.array(subscription), (subscriptions) => {
        const index = new PatternIndex<number>();
        for (const { pattern, value } of subscriptions) index.add(pattern, value);
        for (const { pattern, value } of subscriptions) index.remove(pattern, value);
        expect(index.isEmpty).toBe(true);
      }),
    );
  });

  test('costs no more with a million patterns than with one', () => {
    const index = new PatternIndex<number>();
    for (let i = 0; i < 1_000_000; i += 1) index.add(i % 2 === 0 ? `type.${i}` : `type.${i}.*`, i);
    const startedAt = performance.now();
    for (let i = 0; i < 100_000; i += 1) index.match(`type.${i}.created`);
    const perMatchMs = (performance.now() - startedAt) / 100_000;
    // About 0.5 µs. Trying the patterns one by one would take milliseconds.
    expect(perMatchMs).toBeLessThan(0.1);
  });
});
