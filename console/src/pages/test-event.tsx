/** Sends a test event to one endpoint, and shows what becomes of it. */
import { useState } from 'react';
import { call } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import type { Attempt, Delivery, Endpoint, Page } from '../api/types.ts';
import { Link } from '../router.tsx';
import { Button, Notice } from '../ui/basics.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { errorAt, TextArea, TextField } from '../ui/fields.tsx';
import { showMs } from '../ui/format.ts';
import { CodeBadge, errorName, hintAfter, StatusBadge, WaitingFor } from '../ui/words.tsx';
import { toDelivery } from './delivery-list.tsx';

export function TestDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [type, setType] = useState('');
  const [data, setData] = useState('{\n  "message": "This is a test event."\n}');
  const [sent, setSent] = useState<Delivery | null>(null);
  if (sent !== null) return <Watch delivery={sent} onClose={onClose} again={() => setSent(null)} />;
  return (
    <FormDialog
      title="Send a test event"
      submit="Send"
      onClose={onClose}
      onSubmit={async () => {
        setSent(
          await call<Delivery>('POST', `/v1/endpoints/${endpoint.id}/test`, {
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
            It goes to this endpoint only, whatever it subscribes to, signed like any other.
          </p>
          <TextField
            label="Type"
            mono
            value={type}
            onChange={setType}
            placeholder="posthorn.test"
            error={errorAt(error?.errors ?? [], 'type')}
          />
          <TextArea
            label="Data (JSON)"
            value={data}
            onChange={setData}
            error={errorAt(error?.errors ?? [], 'data')}
          />
        </>
      )}
    </FormDialog>
  );
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

function Watch({ delivery, onClose, again }: { delivery: Delivery; onClose: () => void; again: () => void }) {
  const now = useQuery<Delivery>(`/v1/deliveries/${delivery.id}`, { pollMs: 500 }).data ?? delivery;
  const attempts =
    useQuery<Page<Attempt>>(`/v1/deliveries/${delivery.id}/attempts`, { pollMs: 500 }).data?.data ?? [];
  const last = attempts.at(-1);
  return (
    <Dialog title="Test event" onClose={onClose}>
      <div className="dialog-body" aria-live="polite">
        <div className="row">
          <StatusBadge status={now.status} />
          {last !== undefined && <CodeBadge code={last.status_code} />}
          {last !== undefined && <span className="soft">in {showMs(last.duration_ms)}</span>}
          <span className="grow" />
          {(now.status === 'pending' || now.status === 'retrying') && (
            <span className="soft">
              <WaitingFor delivery={now} />
            </span>
          )}
        </div>
        {last?.error != null && (
          <Notice tone="warn" title={errorName(last.error.class)}>
            {hintAfter(errorName(last.error.class), last.error.hint)}
          </Notice>
        )}
        {now.status === 'delivered' && (
          <Notice tone="good" title="It arrived">
            The endpoint answered {last?.status_code ?? '2xx'}.
          </Notice>
        )}
      </div>
      <div className="dialog-foot">
        <Button onClick={again}>Send another</Button>
        <Link to={toDelivery(now)} className="button primary" onClick={onClose}>
          Show request and response
        </Link>
      </div>
    </Dialog>
  );
}
