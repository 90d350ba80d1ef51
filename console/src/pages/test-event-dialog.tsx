/** Sends a test event to one endpoint and shows the result. */
import type { Attempt, Delivery, Endpoint, Page } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { Link } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { DeliveryStatusBadge, isWaitingStatus, WaitReason } from '../ui/delivery-status.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { describeError, stripTitle } from '../ui/failure-text.ts';
import { findFieldError, TextArea, TextField } from '../ui/fields.tsx';
import { formatMs } from '../ui/format.ts';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { parseJson } from '../ui/json-text.ts';
import { Notice } from '../ui/notice.tsx';
import { linkToDelivery } from './delivery-list.tsx';

export function TestEventDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [type, setType] = useState('');
  const [data, setData] = useState('{\n  "message": "This is a test event."\n}');
  const [delivery, setDelivery] = useState<Delivery | null>(null);
  if (delivery !== null)
    return <ResultDialog delivery={delivery} onClose={onClose} onRepeat={() => setDelivery(null)} />;
  return (
    <FormDialog
      title="Send a test event"
      submitLabel="Send"
      onClose={onClose}
      onSubmit={async () => {
        setDelivery(
          await callApi<Delivery>('POST', `/v1/endpoints/${endpoint.id}/test`, {
            ...(type !== '' && { type }),
            data: parseJson(data),
          }),
        );
        invalidate('/v1/endpoints');
      }}
    >
      {(error) => (
        <>
          <p className="soft">
            Posthorn signs a test event like any other event. It sends the test event to this endpoint only,
            even if the endpoint does not subscribe to its type.
          </p>
          <TextField
            label="Type"
            mono
            value={type}
            onChange={setType}
            placeholder="posthorn.test"
            error={findFieldError(error?.errors ?? [], 'type')}
          />
          <TextArea
            label="Data (JSON)"
            value={data}
            onChange={setData}
            error={findFieldError(error?.errors ?? [], 'data')}
          />
        </>
      )}
    </FormDialog>
  );
}

interface ResultDialogProps {
  delivery: Delivery;
  onClose: () => void;
  onRepeat: () => void;
}

/** Follows the delivery until it ends. */
function ResultDialog({ delivery: sent, onClose, onRepeat }: ResultDialogProps) {
  const path = `/v1/deliveries/${sent.id}`;
  const delivery = useQuery<Delivery>(path, { pollMs: 500 }).data ?? sent;
  const attempts = useQuery<Page<Attempt>>(`${path}/attempts`, { pollMs: 500 }).data?.data ?? [];
  const last = attempts.at(-1);
  return (
    <Dialog title="Test event" onClose={onClose}>
      <div className="dialog-body" aria-live="polite">
        <div className="row">
          <DeliveryStatusBadge status={delivery.status} />
          {last !== undefined && <HttpStatusBadge code={last.status_code} />}
          {last !== undefined && <span className="soft">in {formatMs(last.duration_ms)}</span>}
          <span className="grow" />
          {isWaitingStatus(delivery.status) && (
            <span className="soft">
              <WaitReason delivery={delivery} />
            </span>
          )}
        </div>
        {last?.error != null && (
          <Notice tone="warn" title={describeError(last.error.class)}>
            {stripTitle(describeError(last.error.class), last.error.hint)}
          </Notice>
        )}
        {delivery.status === 'delivered' && (
          <Notice tone="good" title="Delivered">
            The endpoint answered {last?.status_code ?? '2xx'}.
          </Notice>
        )}
      </div>
      <div className="dialog-foot">
        <Button onClick={onRepeat}>Send another</Button>
        <Link to={linkToDelivery(delivery)} className="button primary" onClick={onClose}>
          Show request and response
        </Link>
      </div>
    </Dialog>
  );
}
