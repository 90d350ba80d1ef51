import { DAY_MS } from '../../domain/retention.ts';
import type { StorageKind, StoredKind } from '../../domain/storage.ts';
import type { StorageReport } from '../../manage/storage.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const SOON_DAYS = 14;
const VERY_SOON_DAYS = 2;
/** How late a drop may be without a warning: it may wait for transactions that keep the table locked. */
const MAX_OVERDUE_MS = 2 * DAY_MS;
const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Says how much is stored, how long it is kept, and when the disk is full. */
export function judgeStorage(report: StorageReport, now: number): Finding {
  const check = 'Storage';
  const { events } = report.kinds;
  const parts = [
    ...describeKinds(report, now),
    report.bytesPerEvent === null ? null : `${showSize(report.bytesPerEvent)} per event`,
    events.oldestAt === null ? null : `oldest event ${showDays((now - events.oldestAt) / DAY_MS)} old`,
    events.retentionDays === null ? 'kept forever' : `kept for ${showDays(events.retentionDays)}`,
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

/** Kinds that take less of the database are not listed, except for those that every event adds to. */
const MIN_SHARE = 0.01;
const ALWAYS: readonly string[] = ['events', 'deliveries', 'attempts'] satisfies StorageKind[];

/** Largest first. A kind whose age or retention differs from that of the events shows it. */
function describeKinds({ kinds, databaseBytes }: StorageReport, now: number): string[] {
  const shown = Object.entries(kinds).filter(
    ([name, { bytes }]) => ALWAYS.includes(name) || bytes >= databaseBytes * MIN_SHARE,
  );
  const describe = ([name, kind]: (typeof shown)[number]): string => {
    const size = `${name.replaceAll('_', ' ')} ${showSize(kind.bytes)}`;
    const { oldestAt, retentionDays } = kinds.events;
    const isSame =
      kind.retentionDays === retentionDays && Math.abs(ageOf(kind, now) - ageOf({ oldestAt }, now)) < 1;
    if (kind.oldestAt === null || isSame) return size;
    const kept = kind.retentionDays === null ? 'no limit' : `kept for ${showDays(kind.retentionDays)}`;
    return `${size} (oldest ${showDays(ageOf(kind, now))}, ${kept})`;
  };
  return shown.sort(([, a], [, b]) => b.bytes - a.bytes).map(describe);
}

/** In days. */
const ageOf = ({ oldestAt }: Pick<StoredKind, 'oldestAt'>, now: number): number =>
  oldestAt === null ? 0 : (now - oldestAt) / DAY_MS;

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
