import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesType, patternsMatching } from './event.ts';
import { PatternSet } from './pattern-set.ts';

const segment = fc.constantFrom('order', 'item', 'posthorn', 'a');
const type = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('.'));
const pattern = fc.oneof(
  fc.constant('*'),
  type,
  type.map((text) => `${text}.*`),
);

/** Compares two patterns by an example of each: patterns have stars only at the end. */
function haveTypeInCommon(one: string, other: string): boolean {
  const exampleOf = (each: string): string => (each.endsWith('*') ? `${each.slice(0, -1)}x` : each);
  return matchesType(one, exampleOf(other)) || matchesType(other, exampleOf(one));
}

describe('a set of patterns', () => {
  test('overlaps with exactly those patterns that have a type in common with one of the set', () => {
    fc.assert(
      fc.property(fc.array(pattern, { maxLength: 6 }), pattern, (patterns, other) => {
        const expected = patterns.some((each) => haveTypeInCommon(each, other));
        expect(new PatternSet(patterns).overlaps(other)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test('the patterns of a type are exactly those that match it', () => {
    fc.assert(
      fc.property(pattern, type, (each, example) => {
        expect(patternsMatching(example).includes(each)).toBe(matchesType(each, example));
      }),
    );
  });

  test('costs no more with many patterns than with few', () => {
    const set = new PatternSet(Array.from({ length: 100_000 }, (_, n) => `type.${n}.*`));
    const startedAt = performance.now();
    for (let n = 0; n < 10_000; n += 1) set.overlaps(`other.${n}.*`);
    // About 3 ms. One comparison with each pattern of the set would take minutes.
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
