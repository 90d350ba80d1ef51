import type { Task } from '@posthorn/client';
import type { Tone } from './badge.tsx';
import { formatCount, plural } from './format.ts';

const STATES: Record<Task['state'], readonly [string, Tone]> = {
  queued: ['Queued', 'info'],
  running: ['Running', 'info'],
  done: ['Done', 'good'],
  cancelled: ['Cancelled', 'mute'],
  failed: ['Failed', 'bad'],
};

export const hasTaskEnded = ({ state }: Pick<Task, 'state'>): boolean =>
  state !== 'queued' && state !== 'running';

/** A task that ended and could not change all of its deliveries is not a plain success. */
export function describeTaskState({ state, failed }: Pick<Task, 'state' | 'failed'>): {
  name: string;
  tone: Tone;
} {
  const [name, tone] = STATES[state];
  return { name, tone: state === 'done' && failed > 0 ? 'warn' : tone };
}

const VERBS: Record<string, readonly [string, string]> = {
  replay: ['Replay', 'replayed'],
  discard: ['Discard', 'discarded'],
  expunge: ['Expunge', 'deleted'],
  archive: ['Archive', 'archived'],
  restore: ['Restore', 'restored'],
};
/** Kinds of tasks that count rows, not deliveries. */
const OF_ROWS = new Set<string>(['expunge', 'archive', 'restore']);

/** The API refuses to cancel an expunge, which cannot be undone, and an archive run, which would start again. */
export const canCancelTask = ({ kind }: Pick<Task, 'kind'>): boolean =>
  kind !== 'expunge' && kind !== 'archive';

/** "Replay 40 deliveries" */
export function describeTask({ kind, total, done, failed, filter }: Task): string {
  const isDead = filter.status.length === 1 && filter.status[0] === 'dead';
  const count = Math.max(total, done + failed);
  const verb = VERBS[kind]?.[0] ?? kind;
  if (OF_ROWS.has(kind)) return `${verb} ${plural(count, 'row')}`;
  return `${verb} ${isDead ? plural(count, 'dead letter') : plural(count, 'delivery', 'deliveries')}`;
}

/** "0 replayed, 129 skipped: endpoint disabled or deleted" */
export function describeTaskProgress(task: Pick<Task, 'kind' | 'done' | 'failed' | 'left_out'>): string {
  const { kind, done, failed, left_out: leftOut } = task;
  const others = failed - leftOut;
  return [
    `${formatCount(done)} ${VERBS[kind]?.[1] ?? 'done'}`,
    leftOut > 0 && `${formatCount(leftOut)} skipped: endpoint disabled or deleted`,
    others > 0 && `${formatCount(others)} changed by somebody else meanwhile`,
  ]
    .filter(Boolean)
    .join(', ');
}
