/** Time ranges: a period that ends now, or from one time to another. */

/** What the user chose. `hours` is a period up to now; if it is '', `since` and `until` are ISO times or ''. */
export interface RangeChoice {
  readonly hours: string;
  readonly since: string;
  readonly until: string;
}

/** The range as the API takes it. */
export interface TimeRange {
  readonly since?: string;
  readonly until?: string;
}

export const ANY_TIME: RangeChoice = { hours: '', since: '', until: '' };

export const PERIODS = [
  ['', 'Any time'],
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
] as const;

const HOUR_MS = 3_600_000;

export function toTimeRange({ hours, since, until }: RangeChoice, nowMs: number): TimeRange {
  const period = Number(hours);
  if (hours !== '' && Number.isFinite(period))
    return { since: new Date(nowMs - period * HOUR_MS).toISOString() };
  return { ...(since !== '' && { since }), ...(until !== '' && { until }) };
}

/** An ISO time as the value of a `datetime-local` field, in the user's time zone. */
export function toLocalInput(iso: string): string {
  const date = new Date(iso);
  if (iso === '' || Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The value of a `datetime-local` field as an ISO time; '' if it is incomplete. */
export function fromLocalInput(text: string): string {
  const date = new Date(text);
  return text === '' || Number.isNaN(date.getTime()) ? '' : date.toISOString();
}
