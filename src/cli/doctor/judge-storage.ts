import { DAY_MS } from '../../domain/retention.ts';
import type { StorageReport } from '../../manage/storage.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const SOON_DAYS = 14;
const VERY_SOON_DAYS = 2;
/** A drop may be late for this long, because it waits for transactions that keep the table locked. */
const MAX_OVERDUE_MS = 2 * DAY_MS;
const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Says how much is stored, how long it is kept, and when the disk is full. */
export function judgeStorage(report: StorageReport, now: number): Finding {
  const check = 'Storage';
  const { events } = report.kinds;
  const parts = [
    ...(['events', 'deliveries', 'attempts'] as const).map(
      (kind) => `${kind} ${showSize(report.kinds[kind].bytes)}`,
    ),
    report.bytesPerEvent === null ? null : `${showSize(report.bytesPerEvent)} per event`,
    events.oldestAt === null ? null : `oldest event ${showDays((now - events.oldestAt) / DAY_MS)} old`,
    events.retentionDays === null ? 'kept for ever' : `kept for ${showDays(events.retentionDays)}`,
    report.bytesPerDay === null ? null : `grows by ${showSize(report.bytesPerDay)} per day`,
  ];
  const detail = parts.filter((part) => part !== null).join(', ');
  if (report.overdueMs > MAX_OVERDUE_MS)
    return warning(
      check,
      `${detail}. Partitions that expired ${showDays(report.overdueMs / DAY_MS)} ago are still there.`,
      'Look for "drop expired partitions" in the log, and for transactions that stay open for hours (pg_stat_activity).',
    );
  if (report.fullAt === null) return ok(check, detail);
  const days = (report.fullAt - now) / DAY_MS;
  if (days > SOON_DAYS) return ok(check, `${detail}, disk full in ${showDays(days)}`);
  const todo =
    'Enlarge the disk, or lower POSTHORN_RETENTION_EVENTS. If the disk is full, events are refused.';
  const message = `${detail}. At this rate the disk is full in ${showDays(days)}.`;
  return days < VERY_SOON_DAYS ? problem(check, message, todo) : warning(check, message, todo);
}

const showDays = (days: number): string => {
  const shown = days < 10 ? Math.round(days * 10) / 10 : Math.round(days);
  return `${shown} ${shown === 1 ? 'day' : 'days'}`;
};

function showSize(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}
