import type { Task } from '@posthorn/client';
import { callApi } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { ProgressBar } from '../ui/progress-bar.tsx';
import {
  canCancelTask,
  describeTask,
  describeTaskProgress,
  describeTaskState,
  hasTaskEnded,
} from '../ui/task-text.ts';
import { showError } from '../ui/toasts.tsx';

/** The progress of a task. Without `onClose` the card cannot be closed. */
export function TaskCard({ task, onClose }: { task: Task; onClose?: () => void }) {
  const { canReplay } = usePermissions();
  const isEnded = hasTaskEnded(task);
  const { name, tone } = describeTaskState(task);
  const isSuccess = task.state === 'done';
  const processed = task.done + task.failed;
  const total = Math.max(task.total, processed);
  return (
    <Card>
      <div className="card-body stack" style={{ gap: 8 }} aria-live="polite">
        <div className="row wrap">
          <strong>{describeTask(task)}</strong>
          <Badge tone={tone}>{name}</Badge>
          <span className="soft grow">
            {describeTaskProgress(task)}
            {task.state === 'failed' && task.error !== null && ` · ${task.error}`}
          </span>
          {!isEnded && canReplay && canCancelTask(task) && (
            <Button
              kind="small"
              onClick={() => void callApi('POST', `/v1/tasks/${task.id}/cancel`).catch(showError)}
            >
              Cancel
            </Button>
          )}
          {isEnded && onClose !== undefined && (
            <Button kind="small quiet" onClick={onClose}>
              Close
            </Button>
          )}
        </div>
        <ProgressBar
          value={isSuccess ? total : processed}
          total={total}
          tone={isEnded ? (isSuccess && task.failed === 0 ? 'good' : 'bad') : ''}
          label={`${describeTask(task)}: ${processed} of ${total} processed`}
        />
      </div>
    </Card>
  );
}
