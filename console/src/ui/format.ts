/** Numbers, durations and times as people read them. */
const whole = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export const showCount = (value: number): string =>
  value < 100_000 ? whole.format(value) : compact.format(value);

export function showRate(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
  const percent = share * 100;
  // 99.96 % is not 100 %.
  const digits = percent === 0 || percent === 100 ? 0 : percent > 99 ? 2 : 1;
  return `${Math.min(percent, percent < 100 ? 99.99 : 100).toFixed(digits)}%`;
}

export function showMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return showSeconds(ms / 1000);
}

export function showSeconds(seconds: number): string {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129_600) return `${Math.round((seconds / 3600) * 10) / 10} h`;
  return `${Math.round((seconds / 86_400) * 10) / 10} d`;
}

export function showPerSecond(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond >= 100) return showCount(Math.round(perSecond));
  return String(Number(perSecond.toPrecision(2)));
}

export function showTime(at: string | Date): string {
  return new Date(at).toLocaleString('en-GB', {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });
}

export function showClock(at: string | Date): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString('en-GB')}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

export function showAgo(at: string | Date, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - new Date(at).getTime()) / 1000);
  if (seconds < 2) return 'just now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d ago`;
  return new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${showCount(count)} ${count === 1 ? one : many}`;

/** `http://127.0.0.1:9000/hooks/a?b` → `127.0.0.1:9000/hooks/a?b` */
export const shortUrl = (url: string): string => url.replace(/^https?:\/\//, '').replace(/\/$/, '');
