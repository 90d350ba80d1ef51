/** An RFC 3339 time. A blank may separate date and time, and hours end at 23. */
export const RFC3339 =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

export const TIME_RULE = 'must be an RFC 3339 time such as "2027-01-31T12:00:00Z"';

/** Returns milliseconds since 1970, or NaN. `Date.parse` alone would read February 30 as March 2. */
export function parseTime(text: string): number {
  const [, year, month, day] = RFC3339.exec(text) ?? [];
  if (year === undefined || Number(day) > daysOf(Number(year), Number(month))) return Number.NaN;
  return Date.parse(text);
}

/** The number of days in a month. Day 0 of the next month is the last day of this one. */
function daysOf(year: number, month: number): number {
  const lastDay = new Date(0);
  lastDay.setUTCFullYear(year, month, 0);
  return lastDay.getUTCDate();
}
