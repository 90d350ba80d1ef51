import type { Task } from '@posthorn/client';
import { useEffect } from 'react';
import { invalidate, useQuery } from '../api/query.ts';
import { Link } from '../router.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { useEndpointNames } from '../ui/endpoint-name.ts';
import { describeReason } from '../ui/failure-text.ts';
import { plural } from '../ui/format.ts';
import { ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { describeTask, hasTaskEnded } from '../ui/task-text.ts';
import { At } from '../ui/time.tsx';
import { TaskCard } from './task-card.tsx';

export function TaskPage({ id }: { id: string }) {
  const { data: task, error, refresh } = useQuery<Task>(`/v1/tasks/${id}`, { pollMs: 700 });
  const isEnded = task !== undefined && hasTaskEnded(task);
  usePageTitle('Task');
  useEffect(() => {
    if (isEnded) invalidate('/v1/dead-letters', '/v1/stats', '/v1/endpoints');
  }, [isEnded]);
  if (task === undefined && error !== null) return <ErrorPage title="Task" error={error} onRetry={refresh} />;
  return (
    <>
      <PageHeader
        crumb={<Link to="/tasks">Tasks</Link>}
        title={task === undefined ? <Skeleton width={260} label="Task" /> : describeTask(task)}
        below={
          <div className="row wrap small faint">
            <CopyButton text={id} />
          </div>
        }
      />
      {task !== undefined && (
        <div className="grid">
          <TaskCard task={task} />
          <TaskFacts task={task} />
        </div>
      )}
    </>
  );
}

function TaskFacts({ task }: { task: Task }) {
  const nameEndpoint = useEndpointNames();
  const { filter } = task;
  return (
    <Card title="Selection">
      <dl className="facts card-body">
        <dt>Tenant</dt>
        <dd>{task.tenant ?? 'all tenants'}</dd>
        {filter.endpoint_id !== null && (
          <>
            <dt>Endpoint</dt>
            <dd>
              <Link to={`/endpoints/${filter.endpoint_id}`}>{nameEndpoint(filter.endpoint_id).name}</Link>
            </dd>
          </>
        )}
        <dt>Status</dt>
        <dd>{filter.status.join(', ')}</dd>
        {filter.type !== null && (
          <>
            <dt>Event type</dt>
            <dd className="mono">{filter.type}</dd>
          </>
        )}
        {filter.reason !== null && (
          <>
            <dt>Reason</dt>
            <dd>{describeReason(filter.reason)}</dd>
          </>
        )}
        <dt>Accepted from</dt>
        <dd>{filter.since === null ? 'the beginning' : <At at={filter.since} />}</dd>
        <dt>Accepted until</dt>
        <dd>{filter.until === null ? 'the start of the task' : <At at={filter.until} />}</dd>
        {filter.ids !== null && (
          <>
            <dt>Selected</dt>
            <dd>{plural(filter.ids.length, 'delivery', 'deliveries')}</dd>
          </>
        )}
        {task.why !== null && (
          <>
            <dt>Why</dt>
            <dd>{task.why}</dd>
          </>
        )}
        <dt>Created by</dt>
        <dd className="mono">{task.created_by}</dd>
        <dt>Created</dt>
        <dd>
          <At at={task.created_at} />
        </dd>
        <dt>Ended</dt>
        <dd>{task.finished_at === null ? '–' : <At at={task.finished_at} />}</dd>
      </dl>
    </Card>
  );
}
