import { describe, expect, test } from 'vitest';
import { computeRange, TICK_STEPS } from './chart-scale.ts';

/** The labels that uPlot draws: the smallest step that leaves at most `labels` of them. */
function ticksOf(steps: readonly number[], [from, to]: [number, number], labels = 5): number[] {
  const step = steps.find((each) => (to - from) / each <= labels)!;
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);
}

describe('the y axis', () => {
  test.each([null, 0, 1, 2, 3, 7, 40, 12_345])(
    'of counts up to %s has whole numbers without repeats',
    (max) => {
      const range = computeRange('count', 0, max);
      expect(range[1]).toBeGreaterThanOrEqual(Math.max(1, max ?? 0));
      const ticks = ticksOf(TICK_STEPS.count, range);
      expect(ticks.every(Number.isInteger)).toBe(true);
      expect(new Set(ticks).size).toBe(ticks.length);
    },
  );

  test('of shares ends at 1 and starts a little below the smallest value', () => {
    expect(computeRange('share', 0.97, 1)).toEqual([0.9, 1]);
    expect(computeRange('share', 0, 1)).toEqual([0, 1]);
    expect(computeRange('share', null, null)).toEqual([0.9, 1]);
  });

  test('of numbers keeps fractions, with steps whose labels differ', () => {
    expect(computeRange('number', 0, 0.02)[1]).toBeCloseTo(0.022);
    const labels = TICK_STEPS.number.map((step) => step.toPrecision(1));
    expect(new Set(labels).size).toBe(labels.length);
  });
});
