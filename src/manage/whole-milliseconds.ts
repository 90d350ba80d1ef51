/**
 * Whether the seconds are a whole number of milliseconds. `seconds * 1000` is not always exact in floating point, so this
 * compares with the nearest whole number.
 */
export const isWholeMilliseconds = (seconds: number): boolean =>
  Math.round(seconds * 1000) / 1000 === seconds;

export const WHOLE_MILLISECONDS_RULE = 'must be whole milliseconds: seconds with at most three decimals';
