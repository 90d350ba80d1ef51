import type { Count, Endpoint, Task } from '@posthorn/client';
import { useEffect, useMemo, useState } from 'react';
import { callApi } from '../api/client.ts';
import { asApiError } from '../api/query.ts';
import { navigate } from '../router.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { SelectField } from '../ui/fields.tsx';
import { plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { ANY_TIME, type RangeChoice, toTimeRange } from '../ui/time-range.ts';
import { TimeRangeFields } from '../ui/time-range-fields.tsx';
import { LeftOutNotice } from './dead-letter-bulk-dialog.tsx';

const SELECTIONS = [
  ['dead skipped', 'Dead and skipped deliveries'],
  ['dead', 'Dead deliveries'],
  ['skipped', 'Deliveries skipped while it was disabled'],
  ['dead skipped discarded delivered', 'All deliveries that ended, also delivered ones'],
] as const;
type SelectionName = (typeof SELECTIONS)[number][0];

interface EndpointReplayDialogProps {
  endpoint: Endpoint;
  /** Preselects all deliveries that were skipped while the endpoint was disabled. */
  isRecovery: boolean;
  onClose: () => void;
}

/** Replays what an endpoint missed in a time range. Counts it first. */
export function EndpointReplayDialog({ endpoint, isRecovery, onClose }: EndpointReplayDialogProps) {
  const [selection, setSelection] = useState<SelectionName>(isRecovery ? 'skipped' : 'dead skipped');
  const [choice, setChoice] = useState<RangeChoice>(isRecovery ? ANY_TIME : { ...ANY_TIME, hours: '24' });
  const order = useMemo(
    () => ({ status: selection.split(' '), ...toTimeRange(choice, Date.now()) }),
    [selection, choice],
  );
  const path = `/v1/endpoints/${endpoint.id}/replay`;
  const { counted, error } = useCount(path, order);
  const count =
    counted === null
      ? '…'
      : `${plural(counted.count, 'delivery', 'deliveries')}${counted.more ? ' or more' : ''}`;
  return (
    <FormDialog
      title={isRecovery ? 'Recover skipped deliveries' : 'Replay deliveries'}
      submitLabel={`Replay ${count}`}
      disabled={counted === null || (counted.count === 0 && !counted.more)}
      onClose={onClose}
      onSubmit={async () => {
        const task = await callApi<Task>('POST', path, order);
        navigate(`/tasks/${task.id}`);
      }}
    >
      <p className="soft">Posthorn sends them again in the background, with the same webhook-id.</p>
      <SelectField label="Deliveries" value={selection} onChange={setSelection} options={SELECTIONS} />
      <div className="field">
        <span className="field-label">Events accepted</span>
        <div className="row wrap">
          <TimeRangeFields label="Events accepted" value={choice} onChange={setChoice} />
        </div>
      </div>
      {counted !== null && <LeftOutNotice counted={counted} />}
      {error !== null && <Notice tone="bad">{error}</Notice>}
    </FormDialog>
  );
}

/** How many deliveries an order selects; null while they are counted. */
function useCount(path: string, order: object): { counted: Count | null; error: string | null } {
  const [counted, setCounted] = useState<Count | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    setCounted(null);
    setError(null);
    callApi<Count>('POST', path, { ...order, dry_run: true }, controller.signal).then(
      setCounted,
      (failure: unknown) => {
        if (!controller.signal.aborted) setError(asApiError(failure).message);
      },
    );
    return () => controller.abort();
  }, [path, order]);
  return { counted, error };
}
