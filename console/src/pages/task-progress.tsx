/** How far a bulk task is. It is in the address and in the tab's storage, so that a reload shows it again. */
import { useEffect } from 'react';
import { call } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { useMay } from '../api/session.ts';
import type { Task } from '../api/types.ts';
import { setQuery, usePlace } from '../router.tsx';
import { Badge, Button, Card, Meter, type Tone } from '../ui/basics.tsx';
import { plural, showCount } from '../ui/format.ts';
import { toastError } from '../ui/toasts.tsx';

const STORED = 'posthorn.task';
const ENDED: readonly Task['state'][] = ['done', 'cancelled', 'failed'];
const STATES: Record<Task['state'], readonly [string, Tone]> = {
  queued: ['Queued', 'info'],
  running: ['Running', 'info'],
  done: ['Done', 'good'],
  cancelled: ['Cancelled', 'mute'],
  failed: ['Failed', 'bad'],
};

export function TaskProgress() {
  const id = usePlace().query.get('task') ?? sessionStorage.getItem(STORED);
  const task = useQuery<Task>(id === null ? null : `/v1/tasks/${id}`, { pollMs: 700 });
  const state = task.data?.state;
  const ended = state !== undefined && ENDED.includes(state);
  useEffect(() => {
    if (id !== null) sessionStorage.setItem(STORED, id);
  }, [id]);
  useEffect(() => {
    if (ended) invalidate('/v1/dead-letters', '/v1/stats', '/v1/endpoints');
  }, [ended]);
  const close = (): void => {
    sessionStorage.removeItem(STORED);
    setQuery({ task: null });
  };
  if (id === null) return null;
  if (task.error?.status === 404) return null;
  return <TaskCard task={task.data} ended={ended} close={close} />;
}

function TaskCard({ task, ended, close }: { task: Task | undefined; ended: boolean; close: () => void }) {
  const may = useMay();
  if (task === undefined)
    return (
      <Card>
        <div className="card-body" style={{ minHeight: 74 }} />
      </Card>
    );
  const [name, usual] = STATES[task.state];
  const tone = usual === 'good' && task.failed > 0 ? 'warn' : usual;
  const what = task.kind === 'replay' ? 'Replay' : 'Discard';
  const total = Math.max(task.total, task.done + task.failed);
  return (
    <Card>
      <div className="card-body stack" style={{ gap: 8 }} aria-live="polite">
        <div className="row wrap">
          <strong>
            {what} of {plural(total, 'dead letter')}
          </strong>
          <Badge tone={tone}>{name}</Badge>
          <span className="soft grow">
            {showCount(task.done)} done{task.failed > 0 && `, ${showCount(task.failed)} could not be`}
            {task.error !== null && ` · ${task.error}`}
          </span>
          {!ended && may.write && (
            <Button
              kind="small"
              onClick={() => void call('POST', `/v1/tasks/${task.id}/cancel`).catch(toastError)}
            >
              Cancel
            </Button>
          )}
          {ended && (
            <Button kind="small quiet" onClick={close}>
              Close
            </Button>
          )}
        </div>
        <Meter
          value={ended && task.state === 'done' ? total : task.done + task.failed}
          total={total}
          tone={ended ? (usual === 'good' ? 'good' : 'bad') : ''}
          label={`${what}: ${task.done} of ${total}`}
        />
      </div>
    </Card>
  );
}
