/** The progress of a bulk task. Its id is kept in the URL and in the tab's storage, so that a reload shows it again. */
import type { Task } from '@posthorn/client';
import { useEffect } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { setQuery, useLocation } from '../router.tsx';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { formatCount, plural } from '../ui/format.ts';
import { ProgressBar } from '../ui/progress-bar.tsx';
import { showError } from '../ui/toasts.tsx';

const STORAGE_ITEM = 'posthorn.task';
const STATES: Record<Task['state'], readonly [string, Tone]> = {
  queued: ['Queued', 'info'],
  running: ['Running', 'info'],
  done: ['Done', 'good'],
  cancelled: ['Cancelled', 'mute'],
  failed: ['Failed', 'bad'],
};
const hasEnded = ({ state }: Task): boolean => state !== 'queued' && state !== 'running';

export function TaskProgress() {
  const id = useLocation().query.get('task') ?? sessionStorage.getItem(STORAGE_ITEM);
  const { data: task, error } = useQuery<Task>(id === null ? null : `/v1/tasks/${id}`, { pollMs: 700 });
  const isEnded = task !== undefined && hasEnded(task);
  useEffect(() => {
    if (id !== null) sessionStorage.setItem(STORAGE_ITEM, id);
  }, [id]);
  useEffect(() => {
    if (isEnded) invalidate('/v1/dead-letters', '/v1/stats', '/v1/endpoints');
  }, [isEnded]);
  const close = (): void => {
    sessionStorage.removeItem(STORAGE_ITEM);
    setQuery({ task: null });
  };
  if (id === null || error?.status === 404) return null;
  if (task === undefined)
    return (
      <Card>
        <div className="card-body" style={{ minHeight: 74 }} />
      </Card>
    );
  return <TaskCard task={task} onClose={close} />;
}

function TaskCard({ task, onClose }: { task: Task; onClose: () => void }) {
  const { canWrite } = usePermissions();
  const isEnded = hasEnded(task);
  const [stateName, stateTone] = STATES[task.state];
  const isSuccess = task.state === 'done';
  const action = task.kind === 'replay' ? 'Replay' : 'Discard';
  const processed = task.done + task.failed;
  const total = Math.max(task.total, processed);
  return (
    <Card>
      <div className="card-body stack" style={{ gap: 8 }} aria-live="polite">
        <div className="row wrap">
          <strong>
            {action} {plural(total, 'dead letter')}
          </strong>
          <Badge tone={isSuccess && task.failed > 0 ? 'warn' : stateTone}>{stateName}</Badge>
          <span className="soft grow">
            {formatCount(task.done)} done{task.failed > 0 && `, ${formatCount(task.failed)} failed`}
            {task.error !== null && ` · ${task.error}`}
          </span>
          {!isEnded && canWrite && (
            <Button
              kind="small"
              onClick={() => void callApi('POST', `/v1/tasks/${task.id}/cancel`).catch(showError)}
            >
              Cancel
            </Button>
          )}
          {isEnded && (
            <Button kind="small quiet" onClick={onClose}>
              Close
            </Button>
          )}
        </div>
        <ProgressBar
          value={isSuccess ? total : processed}
          total={total}
          tone={isEnded ? (isSuccess ? 'good' : 'bad') : ''}
          label={`${action}: ${task.done} of ${total}`}
        />
      </div>
    </Card>
  );
}
