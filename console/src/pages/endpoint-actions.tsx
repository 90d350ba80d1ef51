/** The buttons of an endpoint's page: test, pause, disable, replay, delete. */
import type { Endpoint } from '@posthorn/client';
import { useState } from 'react';
import { callApi } from '../api/client.ts';
import { invalidate } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { navigate } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { plural } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { EndpointReplayDialog } from './endpoint-replay-dialog.tsx';
import { TestEventDialog } from './test-event-dialog.tsx';

export function EndpointActions({ endpoint }: { endpoint: Endpoint }) {
  const { canWrite } = usePermissions();
  const [dialog, setDialog] = useState<'test' | 'delete' | 'replay' | null>(null);
  if (!canWrite) return null;
  const { id, paused, enabled, health } = endpoint;
  const closeDialog = (): void => setDialog(null);
  const run = async (request: Promise<unknown>, confirmation: string): Promise<void> => {
    try {
      await request;
      invalidate('/v1/endpoints');
      showToast(confirmation);
    } catch (error) {
      showError(error);
    }
  };
  return (
    <>
      <Button icon="send" kind="primary" disabled={!enabled} onClick={() => setDialog('test')}>
        Send test event
      </Button>
      {enabled && !paused && health.circuit !== 'closed' && (
        <Button
          onClick={() =>
            void run(
              callApi('POST', `/v1/endpoints/${id}/probe`),
              'Sending the oldest waiting delivery: if it succeeds, the circuit closes',
            )
          }
        >
          Try now
        </Button>
      )}
      {enabled && (
        <Button
          icon={paused ? 'play' : 'pause'}
          onClick={() =>
            void run(
              callApi('POST', `/v1/endpoints/${id}/${paused ? 'resume' : 'pause'}`),
              paused ? 'Resumed' : 'Paused: deliveries wait until you resume it',
            )
          }
        >
          {paused ? 'Resume' : 'Pause'}
        </Button>
      )}
      <Button
        onClick={() =>
          void run(
            callApi('PATCH', `/v1/endpoints/${id}`, { enabled: !enabled }),
            enabled ? 'Disabled: new events are not sent to it' : 'Enabled',
          )
        }
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button icon="replay" disabled={!enabled} onClick={() => setDialog('replay')}>
        Replay…
      </Button>
      <Button icon="trash" kind="danger" label="Delete endpoint" onClick={() => setDialog('delete')} />
      {dialog === 'test' && <TestEventDialog endpoint={endpoint} onClose={closeDialog} />}
      {dialog === 'replay' && <EndpointReplayDialog endpoint={endpoint} onClose={closeDialog} />}
      {dialog === 'delete' && <DeleteDialog endpoint={endpoint} onClose={closeDialog} />}
    </>
  );
}

interface DialogProps {
  endpoint: Endpoint;
  onClose: () => void;
}

function DeleteDialog({ endpoint, onClose }: DialogProps) {
  const { waiting } = endpoint.health;
  return (
    <FormDialog
      title="Delete this endpoint?"
      submitLabel="Delete endpoint"
      danger
      onClose={onClose}
      onSubmit={async () => {
        await callApi('DELETE', `/v1/endpoints/${endpoint.id}`);
        invalidate('/v1/endpoints');
        showToast('Endpoint deleted');
        navigate('/endpoints');
      }}
    >
      <p>
        Posthorn stops sending to <strong>{nameEndpoint(endpoint).name}</strong> and skips the deliveries that
        wait for it. Its history stays readable. You cannot undo this.
      </p>
      {waiting > 0 && (
        <Notice tone="warn">{plural(waiting, 'delivery is', 'deliveries are')} waiting for it.</Notice>
      )}
    </FormDialog>
  );
}
