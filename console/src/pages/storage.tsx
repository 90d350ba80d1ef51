import type { Storage } from '@posthorn/client';
import { useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Card } from '../ui/card.tsx';
import { formatBytes, formatCount, formatMinute, formatSeconds } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { ProgressBar } from '../ui/progress-bar.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { KafkaPartitions } from './kafka-partitions.tsx';

const POLL_MS = 30_000;
const ROW_HEIGHT = 40;

type Kind = Storage['kinds'][keyof Storage['kinds']] & { readonly name: string };

const NAMES: Readonly<Record<keyof Storage['kinds'], string>> = {
  events: 'Events',
  deliveries: 'Deliveries',
  attempts: 'Attempts',
  queue: 'Queue',
  dead_letters: 'Dead letters',
  converted_payloads: 'Converted payloads',
  batches: 'Batches',
  debounce: 'Debounce keys',
  outbox: 'Outbox',
  idempotency: 'Idempotency keys',
  inboxes: 'Inboxes',
  audit: 'Audit log',
  statistics: 'Statistics',
  other: 'Everything else',
};

export function StoragePage() {
  usePageTitle('Storage');
  const { isAdmin } = usePermissions();
  const { data: storage, error } = useQuery<Storage>(isAdmin ? '/v1/storage' : null, { pollMs: POLL_MS });
  return (
    <>
      <PageHeader
        title="Storage"
        below={<p className="soft">How much is stored, how long it is kept, and when the disk is full.</p>}
      />
      {!isAdmin && <Notice tone="warn">This page needs an admin key.</Notice>}
      {error !== undefined && error !== null && <Notice tone="bad">{error.message}</Notice>}
      {isAdmin && (
        <div className="grid">
          <Figures storage={storage} />
          {storage !== undefined && storage.dead_letters_expired > 0 && (
            <Notice tone="warn">
              Retention discarded {formatCount(storage.dead_letters_expired)} dead letters in the last 30
              days, because nobody acted on them.
            </Notice>
          )}
          <Card title="By kind">
            <Table
              label="Storage by kind"
              rows={storage && rowsOf(storage)}
              skeletonRows={14}
              rowHeight={ROW_HEIGHT}
              getKey={({ name }) => name}
              empty={null}
              columns={COLUMNS}
            />
          </Card>
          <KafkaPartitions />
        </div>
      )}
    </>
  );
}

const rowsOf = ({ kinds }: Storage): Kind[] =>
  Object.entries(NAMES).map(([kind, name]) => ({ name, ...kinds[kind as keyof Storage['kinds']] }));

function Figures({ storage }: { storage: Storage | undefined }) {
  return (
    <>
      {storage !== undefined && storage.overdue_seconds > 2 * 86_400 && (
        <Notice tone="warn">
          Expired data should have been dropped {Math.floor(storage.overdue_seconds / 86_400)} days ago. The
          log and the tasks say why it was not.
        </Notice>
      )}
      <div className="grid tiles four">
        <Tile label="Database" value={storage && formatBytes(storage.database_bytes)} />
        <Tile
          label="Per event"
          value={storage && (storage.bytes_per_event === null ? '–' : formatBytes(storage.bytes_per_event))}
          note="with its deliveries and attempts"
        />
        <Tile
          label="Growth"
          value={
            storage && (storage.bytes_per_day === null ? '–' : `${formatBytes(storage.bytes_per_day)} / day`)
          }
        />
        <Tile
          label="Disk full"
          value={storage && describeFull(storage)}
          note={storage && describeDisk(storage)}
        />
      </div>
      {storage?.disk != null && (
        <ProgressBar
          value={storage.disk.total_bytes - storage.disk.free_bytes}
          total={storage.disk.total_bytes}
          label="Disk used"
        />
      )}
    </>
  );
}

function Tile({
  label,
  value,
  note,
}: {
  label: string;
  value: string | undefined;
  note?: string | undefined;
}) {
  return (
    <div className="tile">
      <div className="tile-label">{label}</div>
      <div className="tile-value">{value ?? <Skeleton width={64} />}</div>
      <div className="tile-note">{note}</div>
    </div>
  );
}

/** PostgreSQL estimates the number from time to time. Before the first estimate it is 0, although there are rows. */
function describeRows({ rows, oldest_at }: Kind): string {
  return rows === 0 && oldest_at !== null ? 'not counted' : formatCount(rows);
}

const describeFull = ({ disk, full_at }: Storage): string =>
  full_at === null ? (disk === null ? 'unknown' : 'not expected') : formatMinute(full_at);

const describeDisk = ({ disk }: Storage): string =>
  disk === null
    ? 'Posthorn cannot read the size of the disk'
    : `${formatBytes(disk.free_bytes)} of ${formatBytes(disk.total_bytes)} free`;

const COLUMNS: readonly Column<Kind>[] = [
  { name: 'Kind', render: ({ name }) => name },
  { name: 'Size', width: 110, isNumeric: true, render: ({ bytes }) => formatBytes(bytes) },
  { name: 'Rows (about)', width: 120, isNumeric: true, hideOnPhone: true, render: describeRows },
  {
    name: 'Oldest',
    width: 110,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ oldest_at, days_kept }) =>
      oldest_at === null ? <span className="faint">none</span> : formatSeconds(days_kept * 86_400),
  },
  {
    name: 'Retention',
    width: 110,
    isNumeric: true,
    render: ({ retention_days }) =>
      retention_days === null ? <span className="faint">no limit</span> : `${retention_days} d`,
  },
];
