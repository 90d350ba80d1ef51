import type { Sources } from '@posthorn/client';
import { useQuery } from '../api/query.ts';
import { Card } from '../ui/card.tsx';
import { formatCount, plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { type Column, Table } from '../ui/table.tsx';

const POLL_MS = 5_000;
const ROW_HEIGHT = 40;

type Partition = Sources['kafka']['partitions'][number];

/** How far the Kafka topics are read. Shows nothing if Kafka is not configured. */
export function KafkaPartitions() {
  const { data: sources } = useQuery<Sources>('/v1/sources', { pollMs: POLL_MS });
  if (sources === undefined) return null;
  const { topics, partitions } = sources.kafka;
  if (topics.length === 0 && partitions.length === 0) return null;
  const rejected = partitions.reduce((sum, each) => sum + each.rejected, 0);
  return (
    <Card title="Kafka">
      {rejected > 0 && (
        <Notice tone="warn">
          Posthorn rejected {plural(rejected, 'record')}. <code>posthorn kafka rejected</code> says why.
        </Notice>
      )}
      <Table
        label="Kafka partitions"
        rows={partitions}
        skeletonRows={1}
        rowHeight={ROW_HEIGHT}
        // A topic that was created again has its partitions twice, and only one of each is read.
        getKey={({ topic, partition, paused_reason, position }) =>
          paused_reason === 'topic_removed' ? `${topic}/${partition}/${position}` : `${topic}/${partition}`
        }
        empty={<p className="soft">Nothing was read yet.</p>}
        columns={COLUMNS}
      />
    </Card>
  );
}

const COLUMNS: readonly Column<Partition>[] = [
  { name: 'Topic', render: ({ topic }) => topic },
  { name: 'Partition', width: 90, isNumeric: true, render: ({ partition }) => String(partition) },
  { name: 'Lag', width: 90, isNumeric: true, render: ({ lag }) => formatCount(lag) },
  {
    name: 'Waiting',
    width: 90,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ waiting }) => formatCount(waiting),
  },
  {
    name: 'Rejected',
    width: 90,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ rejected }) => formatCount(rejected),
  },
  {
    name: 'State',
    width: 190,
    render: ({ owner, paused_reason }) =>
      paused_reason?.replaceAll('_', ' ') ?? (owner === null ? 'no process reads it' : 'reading'),
  },
];
