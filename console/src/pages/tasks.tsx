import type { Task } from '@posthorn/client';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useSession } from '../api/session.ts';
import { useLocation } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { useEndpointNames } from '../ui/endpoint-name.ts';
import { ExportButton } from '../ui/export-button.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { useQueryRange } from '../ui/query-range.ts';
import { type Column, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { describeTask, describeTaskProgress, describeTaskState } from '../ui/task-text.ts';
import { Ago } from '../ui/time.tsx';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

const STATES = [
  ['', 'Any state'],
  ['queued', 'Queued'],
  ['running', 'Running'],
  ['done', 'Done'],
  ['cancelled', 'Cancelled'],
  ['failed', 'Failed'],
] as const;

export function TasksPage() {
  usePageTitle('Tasks');
  const { selectedTenant } = useSession();
  const { query } = useLocation();
  const { range } = useQueryRange();
  const path = withQuery('/v1/tasks', { state: query.get('state'), ...range, tenant: selectedTenant });
  const list = usePagedList<Task>(path, ({ id }) => id, { pollMs: 2_000 });
  const nameEndpoint = useEndpointNames();
  return (
    <>
      <PageHeader
        title="Tasks"
        below={
          <p className="soft">
            Work in the background, such as replays and discards of many deliveries, with its progress.
          </p>
        }
      />
      <Card>
        <div className="filters">
          <FilterSelect name="state" label="State" options={STATES} />
          <TimeRangeFilter />
          <span className="grow" />
          <ExportButton path={path} name="tasks" />
        </div>
        <PagedTable
          label="Tasks"
          list={list}
          getKey={({ id }) => id}
          getLink={({ id }) => `/tasks/${id}`}
          rowHeight={TALL_ROW}
          columns={buildColumns((id) => nameEndpoint(id).name)}
          empty={
            <EmptyState icon="replay" title="No tasks">
              A task appears here when you replay or discard many deliveries at once.
            </EmptyState>
          }
        />
      </Card>
    </>
  );
}

const buildColumns = (nameEndpoint: (id: string) => string): Column<Task>[] => [
  {
    name: 'Task',
    isLink: true,
    render: (task) => {
      const { endpoint_id: endpointId } = task.filter;
      const target = endpointId === null ? (task.tenant ?? 'all tenants') : nameEndpoint(endpointId);
      return <TwoLineCell first={describeTask(task)} second={target} />;
    },
  },
  {
    name: 'State',
    width: 110,
    render: (task) => {
      const { name, tone } = describeTaskState(task);
      return <Badge tone={tone}>{name}</Badge>;
    },
  },
  {
    name: 'Progress',
    width: '36%',
    hideOnPhone: true,
    render: (task) => <span className="soft">{describeTaskProgress(task)}</span>,
  },
  { name: 'Created', width: 104, isNumeric: true, render: ({ created_at }) => <Ago at={created_at} /> },
];
