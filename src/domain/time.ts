const DATE =
  /\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d))/;
const CLOCK = /(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)/;

/**
 * An RFC 3339 time. A blank may separate date and time, and hours end at 23. The expression also accepts February 29 in
 * years that are not leap years: `parseTime` rejects it.
 */
export const RFC3339 = new RegExp(`^${DATE.source}[Tt ]${CLOCK.source}$`);

export const TIME_RULE = 'must be an RFC 3339 time such as "2027-01-31T12:00:00Z"';

/** Returns milliseconds since 1970, or NaN. `Date.parse` alone would read February 30 as March 2. */
export function parseTime(text: string): number {
  if (!RFC3339.test(text)) return Number.NaN;
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number];
  if (day > daysOf(year, month)) return Number.NaN;
  return Date.parse(text);
}

/** The number of days in a month. Day 0 of the next month is the last day of this one. */
function daysOf(year: number, month: number): number {
  const lastDay = new Date(0);
  lastDay.setUTCFullYear(year, month, 0);
  return lastDay.getUTCDate();
}
