/** Parses `Retry-After`: seconds or an HTTP date. Returns null for anything else. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1000;
  // Date.parse also accepts "1" or "2026", but an HTTP date begins with the name of a day.
  if (!/^(mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
