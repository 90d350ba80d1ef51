/** Numbers, durations and times as text. */
import { NUMBER_LOCALE, TIME_LOCALE } from './locale.ts';

const whole = new Intl.NumberFormat(NUMBER_LOCALE);
const compact = new Intl.NumberFormat(NUMBER_LOCALE, { notation: 'compact', maximumFractionDigits: 1 });

export const formatCount = (value: number): string =>
  value < 100_000 ? whole.format(value) : compact.format(value);

/** `/v1/stats` counts up to this. */
export const STATS_COUNT_LIMIT = 100_000;

/** For a number that was counted up to a limit: `10,000+`. */
export const formatUpTo = (value: number, limit: number): string =>
  value < limit ? formatCount(value) : `${whole.format(limit)}+`;

export function formatRate(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
  const percent = share * 100;
  // 99.996 % must not be shown as 100 %.
  const digits = percent === 0 || percent === 100 ? 0 : percent > 99 ? 2 : 1;
  return `${Math.min(percent, percent < 100 ? 99.99 : 100).toFixed(digits)}%`;
}

export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return formatSeconds(ms / 1000);
}

export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round((seconds / 3600) * 10) / 10} h`;
  return `${Math.round((seconds / 86_400) * 10) / 10} d`;
}

export function formatPerSecond(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond >= 100) return formatCount(Math.round(perSecond));
  return String(Number(perSecond.toPrecision(2)));
}

/** With the year, if it is not the current one. */
export function formatTime(at: string | Date): string {
  const date = new Date(at);
  return date.toLocaleString(TIME_LOCALE, {
    day: 'numeric',
    month: 'short',
    year: date.getFullYear() === new Date().getFullYear() ? undefined : 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
}

export function formatMinute(at: string | Date): string {
  return new Date(at).toLocaleString(TIME_LOCALE, {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  });
}

export function formatClock(at: string | Date): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString(TIME_LOCALE)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** How long ago: "12 s ago"; a date after a week. */
export function formatAge(at: string | Date, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - new Date(at).getTime()) / 1000);
  if (seconds < 2) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return new Date(at).toLocaleDateString(TIME_LOCALE, { day: 'numeric', month: 'short', year: 'numeric' });
}

/** `1.3 GB` */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** `plural(2, 'event')` → `2 events` */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** `http://127.0.0.1:9000/hooks/a?b` → `127.0.0.1:9000/hooks/a?b` */
export const shortenUrl = (url: string): string => url.replace(/^https?:\/\//, '').replace(/\/$/, '');
