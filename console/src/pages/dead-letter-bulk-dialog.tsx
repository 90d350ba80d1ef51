/** Replays or discards many dead letters. Shows how many first, then starts a task. `TaskProgress` shows its progress. */
import type { Count, DeadLetterOrder, Task } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError, invalidate } from '../api/query.ts';
import { setQuery } from '../router.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/fields.tsx';
import { plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { useMountEffect } from '../ui/use-mount-effect.ts';

export type DeadLetterFilter = DeadLetterOrder['filter'];

export interface BulkAction {
  readonly kind: 'replay' | 'discard';
  readonly filter: DeadLetterFilter;
  /** What the filter selects, for people. */
  readonly selection: string;
}

/** The Undo button cancels a discard before it starts: the task is created when this time is over. */
const UNDO_MS = 10_000;

interface BulkDialogProps extends BulkAction {
  onClose: () => void;
  onConfirm?: () => void;
}

export function DeadLetterBulkDialog({ kind, filter, selection, onClose, onConfirm }: BulkDialogProps) {
  const [dryRun, setDryRun] = useState<Count | null>(null);
  const [dryRunError, setDryRunError] = useState<string | null>(null);
  const [why, setWhy] = useState('');
  const path = `/v1/dead-letters/${kind}`;
  useMountEffect(() => {
    callApi<Count>('POST', path, { filter, dry_run: true }).then(setDryRun, (error: unknown) =>
      setDryRunError(asApiError(error).message),
    );
  });
  const startTask = async (): Promise<void> => {
    const task = await callApi<Task>('POST', path, { filter, ...(why !== '' && { why }) });
    setQuery({ task: task.id });
    invalidate('/v1/dead-letters', '/v1/stats');
  };
  const submit = async (): Promise<void> => {
    onConfirm?.();
    if (kind === 'replay') await startTask();
    else discardAfterUndo(startTask, dryRun?.count ?? 0);
    onClose();
  };
  const describeCount = (count: number): string =>
    `${plural(count, 'dead letter')}${dryRun?.more ? ' or more' : ''}`;
  const count = dryRun === null ? '…' : describeCount(dryRun.count);
  const changedCount =
    dryRun === null ? 0 : kind === 'replay' ? dryRun.count - dryRun.left_out : dryRun.count;
  const changed = dryRun === null ? '…' : describeCount(changedCount);
  return (
    <FormDialog
      title={kind === 'replay' ? 'Replay dead letters' : 'Discard dead letters'}
      submitLabel={kind === 'replay' ? `Replay ${changed}` : `Discard ${changed}`}
      danger={kind === 'discard'}
      disabled={changedCount === 0}
      onClose={onClose}
      onSubmit={submit}
    >
      <p>
        <strong>{count}</strong> <span className="soft">({selection})</span>
      </p>
      <p className="soft">
        {kind === 'replay'
          ? 'Posthorn sends them again in the background, as fast as the limits of their endpoints allow. Deliveries that fail again return to this list.'
          : 'Posthorn removes them from this list. The events and attempts stay readable, and you can still replay each delivery.'}
      </p>
      {kind === 'discard' && (
        <TextField label="Why (optional)" value={why} onChange={setWhy} hint="Recorded with each delivery." />
      )}
      {kind === 'replay' && dryRun !== null && <LeftOutNotice counted={dryRun} />}
      {dryRunError !== null && <Notice tone="bad">{dryRunError}</Notice>}
    </FormDialog>
  );
}

/** Says before a replay how many deliveries it cannot send. */
export function LeftOutNotice({ counted: { count, left_out: leftOut } }: { counted: Count }) {
  if (leftOut === 0) return null;
  return (
    <Notice tone="warn" title={leftOut === count ? 'Nothing will be sent' : undefined}>
      {leftOut === count
        ? 'All of them belong'
        : `${plural(leftOut, 'delivery belongs', 'deliveries belong')}`}{' '}
      to an endpoint that is disabled or deleted, and will be skipped.
    </Notice>
  );
}

function discardAfterUndo(startTask: () => Promise<void>, count: number): void {
  const timer = setTimeout(() => void startTask().catch(showError), UNDO_MS);
  showToast(`Discarding ${plural(count, 'dead letter')} in 10 seconds`, {
    tone: 'info',
    durationMs: UNDO_MS,
    onUndo: () => {
      clearTimeout(timer);
      showToast('Nothing was discarded');
    },
  });
}
