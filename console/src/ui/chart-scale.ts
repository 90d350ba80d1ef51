/** The y axis of charts. */
export type ScaleKind = 'share' | 'count' | 'number';

/** Steps of the labels. Their labels have few digits, so that no two of them look the same. */
const POWERS = [0.001, 0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const STEPS = POWERS.flatMap((power) => [1, 2, 5].map((digit) => Number((digit * power).toPrecision(1))));
export const TICK_STEPS: Record<ScaleKind, number[]> = {
  share: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
  count: STEPS.filter((step) => step >= 1),
  number: STEPS,
};

/** Where the axis starts and ends, for the smallest and the largest value. Null: there are no values. */
export function computeRange(scale: ScaleKind, min: number | null, max: number | null): [number, number] {
  if (scale === 'share') return [Math.max(0, Math.floor(((min ?? 1) - 0.05) * 10) / 10), 1];
  const top = max === null || max === 0 ? 1 : max * 1.1;
  return [0, scale === 'count' ? Math.max(1, Math.ceil(top)) : top];
}
