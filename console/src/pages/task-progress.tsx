/** The progress of a bulk task. Its id is kept in the URL and in the tab's storage, so that a reload shows it again. */
import type { Task } from '@posthorn/client';
import { useEffect } from 'react';
import { invalidate, useQuery } from '../api/query.ts';
import { setQuery, useLocation } from '../router.tsx';
import { Card } from '../ui/card.tsx';
import { hasTaskEnded } from '../ui/task-text.ts';
import { TaskCard } from './task-card.tsx';

const STORAGE_ITEM = 'posthorn.task';
export function TaskProgress() {
  const id = useLocation().query.get('task') ?? sessionStorage.getItem(STORAGE_ITEM);
  const { data: task, error } = useQuery<Task>(id === null ? null : `/v1/tasks/${id}`, { pollMs: 700 });
  const isEnded = task !== undefined && hasTaskEnded(task);
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
