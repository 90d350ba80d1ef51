import type { Delivery, Replayed } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { usePermissions } from '../api/session.ts';
import { Button } from '../ui/button.tsx';
import type { DeliveryStatus } from '../ui/delivery-status.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { plural } from '../ui/format.ts';
import { showError, showToast } from '../ui/toasts.tsx';

const FAILED: readonly DeliveryStatus[] = ['dead', 'skipped', 'discarded'];

interface EventReplayProps {
  id: string;
  deliveries: readonly Delivery[];
  onReplay: () => Promise<void>;
}

/** Replays the failed deliveries of an event, or all of them. */
export function EventReplayButtons({ id, deliveries, onReplay }: EventReplayProps) {
  const { canWrite } = usePermissions();
  const [isConfirming, setConfirming] = useState(false);
  if (!canWrite || deliveries.length === 0) return null;
  const failedCount = deliveries.filter(({ status }) => FAILED.includes(status)).length;
  const replay = async (body: { status?: readonly DeliveryStatus[] }): Promise<void> => {
    const replayed = await callApi<Replayed>('POST', `/v1/events/${id}/replay`, body);
    showToast(describeReplay(replayed), { tone: replayed.deliveries === 0 ? 'bad' : 'good' });
    await onReplay();
  };
  return (
    <>
      {failedCount > 0 && (
        <Button kind="primary" icon="replay" onClick={() => void replay({ status: FAILED }).catch(showError)}>
          {failedCount === 1 ? 'Replay' : `Replay ${failedCount} failed`}
        </Button>
      )}
      <Button icon="replay" onClick={() => setConfirming(true)}>
        Replay all…
      </Button>
      {isConfirming && (
        <FormDialog
          title="Replay all deliveries of this event?"
          submitLabel="Replay all"
          onClose={() => setConfirming(false)}
          onSubmit={async () => {
            await replay({});
            setConfirming(false);
          }}
        >
          <p className="soft">
            Posthorn sends the event to {plural(deliveries.length, 'endpoint')} again with the same
            webhook-id, also to endpoints that already received it. Waiting deliveries become due now.
          </p>
        </FormDialog>
      )}
    </>
  );
}

function describeReplay({ deliveries, skipped }: Replayed): string {
  if (deliveries === 0) return 'Nothing was replayed: the endpoint is disabled or deleted';
  const replayed = `Replaying ${plural(deliveries, 'delivery', 'deliveries')}`;
  if (skipped === 0) return replayed;
  return `${replayed}. Skipped ${plural(skipped, 'delivery', 'deliveries')} to disabled or deleted endpoints.`;
}
