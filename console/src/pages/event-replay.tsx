import type { Delivery, EventOutcome, Replayed } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import type { DeliveryStatus } from '../ui/delivery-status.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { formatCount, plural } from '../ui/format.ts';
import { showError, showToast } from '../ui/toasts.tsx';
import { LeftOutNotice } from './dead-letter-bulk-dialog.tsx';

const FAILED = ['dead', 'skipped', 'discarded'] as const satisfies readonly DeliveryStatus[];

/** A debounced delivery did not fail: another event was sent instead. */
const isDebounced = ({ status, reason }: Delivery): boolean => status === 'skipped' && reason === 'debounced';

interface EventReplayProps {
  id: string;
  /** The deliveries that are loaded, and how many there are of each status. */
  deliveries: readonly Delivery[];
  counts: EventOutcome;
  onReplay: () => Promise<void>;
}

/** A replay that waits for a confirmation: what to send, and what the dry run says. */
interface Planned {
  readonly title: string;
  readonly order: { readonly status?: readonly DeliveryStatus[] };
  readonly counted: Replayed;
}

/** Replays the failed deliveries of an event, or all of them. Says before what it would leave out. */
export function EventReplayButtons({ id, deliveries, counts, onReplay }: EventReplayProps) {
  const { canReplay } = usePermissions();
  const [planned, setPlanned] = useState<Planned | null>(null);
  if (!canReplay || deliveries.length === 0) return null;
  const path = `/v1/events/${id}/replay`;
  const failed = deliveries.filter(
    (each) => FAILED.some((status) => status === each.status) && !isDebounced(each),
  );
  const hasDebounced = deliveries.some(isDebounced);
  const failedCount = hasDebounced ? failed.length : FAILED.reduce((sum, status) => sum + counts[status], 0);

  const plan = async (title: string, order: Planned['order']): Promise<Planned> => ({
    title,
    order,
    counted: await callApi<Replayed>('POST', path, { ...order, dry_run: true }),
  });
  const replay = async (order: Planned['order']): Promise<void> => {
    const replayed = await callApi<Replayed>('POST', path, order);
    showToast(describeReplay(replayed), { tone: replayed.deliveries === 0 ? 'bad' : 'good' });
    await onReplay();
  };
  const replayFailed = async (): Promise<void> => {
    if (hasDebounced) {
      // The API selects by status, which the debounced ones share with those of disabled endpoints.
      for (const each of failed) await callApi('POST', `/v1/deliveries/${each.id}/replay`);
      showToast(describeReplay({ deliveries: failed.length, skipped: 0, task_id: null }));
      return onReplay();
    }
    const next = await plan('Replay the failed deliveries of this event?', { status: FAILED });
    if (next.counted.skipped === 0) await replay(next.order);
    else setPlanned(next);
  };
  const planAll = async (): Promise<void> =>
    setPlanned(await plan('Replay all deliveries of this event?', {}));
  return (
    <>
      {failedCount > 0 && (
        <Button kind="primary" icon="replay" onClick={() => void replayFailed().catch(showError)}>
          {failedCount === 1 ? 'Replay' : `Replay ${formatCount(failedCount)} failed`}
        </Button>
      )}
      <Button icon="replay" onClick={() => void planAll().catch(showError)}>
        Replay all…
      </Button>
      {planned !== null && (
        <ReplayDialog
          planned={planned}
          onClose={() => setPlanned(null)}
          onSubmit={async () => {
            await replay(planned.order);
            setPlanned(null);
          }}
        />
      )}
    </>
  );
}

interface ReplayDialogProps {
  planned: Planned;
  onSubmit: () => Promise<void>;
  onClose: () => void;
}

function ReplayDialog({ planned: { title, counted }, onSubmit, onClose }: ReplayDialogProps) {
  const { deliveries, skipped } = counted;
  return (
    <FormDialog
      title={title}
      submitLabel={`Replay ${plural(deliveries, 'delivery', 'deliveries')}`}
      disabled={deliveries === 0}
      onClose={onClose}
      onSubmit={onSubmit}
    >
      {deliveries > 0 && (
        <p className="soft">
          Posthorn sends the event to {plural(deliveries, 'endpoint')} again with the same webhook-id, also to
          endpoints that already received it. Waiting deliveries become due now.
        </p>
      )}
      <LeftOutNotice counted={{ count: deliveries + skipped, more: false, left_out: skipped }} />
    </FormDialog>
  );
}

function describeReplay({ deliveries, skipped, task_id }: Replayed): string {
  if (task_id !== null)
    return `Replaying about ${plural(deliveries, 'delivery', 'deliveries')} in the background`;
  if (deliveries === 0) return 'Nothing was replayed: the endpoint is disabled or deleted';
  const replayed = `Replaying ${plural(deliveries, 'delivery', 'deliveries')}`;
  if (skipped === 0) return replayed;
  return `${replayed}. Skipped ${plural(skipped, 'delivery', 'deliveries')} to disabled or deleted endpoints.`;
}
