/** The indices of values without a value before or after them: a line would not show them. */
export function findIsolated(values: ArrayLike<number | null | undefined>): number[] {
  const hasValue = (index: number): boolean => values[index] != null;
  const found: number[] = [];
  for (let index = 0; index < values.length; index += 1)
    if (hasValue(index) && !hasValue(index - 1) && !hasValue(index + 1)) found.push(index);
  return found;
}
