/** Bulk replay and discard: says how many it is about before, and leaves a task that can be watched. */
import { useState } from 'react';
import { call } from '../api/client.ts';
import { asApiError, invalidate } from '../api/query.ts';
import { setQuery } from '../router.tsx';
import { Notice } from '../ui/basics.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { TextField } from '../ui/fields.tsx';
import { plural } from '../ui/format.ts';
import { toast, toastError } from '../ui/toasts.tsx';
import { useOnce } from '../ui/use-once.ts';

export interface BulkFilter {
  readonly tenant?: string;
  readonly endpoint_id?: string;
  readonly reason?: string;
  readonly type?: string;
  readonly ids?: readonly string[];
}

interface Count {
  readonly count: number;
  readonly more?: boolean;
}

/** How long a discard can be called off: it is only ordered when that is over. */
const UNDO_MS = 10_000;

export function BulkDialog({
  kind,
  filter,
  about,
  onClose,
  onOrdered,
}: {
  kind: 'replay' | 'discard';
  filter: BulkFilter;
  about: string;
  onClose: () => void;
  onOrdered?: () => void;
}) {
  const [counted, setCounted] = useState<Count | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [why, setWhy] = useState('');
  const path = `/v1/dead-letters/${kind}`;
  useOnce(() => {
    call<Count>('POST', path, { filter, dry_run: true }).then(setCounted, (error: unknown) =>
      setProblem(asApiError(error).message),
    );
  });
  const order = async (): Promise<void> => {
    const task = await call<{ id: string }>('POST', path, { filter, ...(why !== '' && { why }) });
    setQuery({ task: task.id });
    invalidate('/v1/dead-letters', '/v1/stats');
  };
  const submit = async (): Promise<void> => {
    onOrdered?.();
    if (kind === 'replay') await order();
    else discardLater(order, counted?.count ?? 0);
    onClose();
  };
  const count =
    counted === null ? '…' : `${plural(counted.count, 'dead letter')}${counted.more ? ' or more' : ''}`;
  return (
    <FormDialog
      title={kind === 'replay' ? 'Replay dead letters' : 'Discard dead letters'}
      submit={kind === 'replay' ? `Replay ${count}` : `Discard ${count}`}
      danger={kind === 'discard'}
      disabled={counted === null || counted.count === 0}
      onClose={onClose}
      onSubmit={submit}
    >
      <p>
        <strong>{count}</strong> <span className="soft">({about})</span>
      </p>
      <p className="soft">
        {kind === 'replay'
          ? 'They are sent again in the background, at the pace that their endpoints allow. What fails again comes back here.'
          : 'They leave this list for good. The events and the attempts stay readable, and each can still be replayed by hand.'}
      </p>
      {kind === 'discard' && (
        <TextField label="Why (optional)" value={why} onChange={setWhy} hint="Recorded with each of them." />
      )}
      {problem !== null && <Notice tone="bad">{problem}</Notice>}
    </FormDialog>
  );
}

function discardLater(order: () => Promise<void>, count: number): void {
  const timer = setTimeout(() => void order().catch(toastError), UNDO_MS);
  toast(`Discarding ${plural(count, 'dead letter')} in 10 seconds`, {
    tone: 'info',
    forMs: UNDO_MS,
    undo: () => {
      clearTimeout(timer);
      toast('Nothing was discarded');
    },
  });
}
