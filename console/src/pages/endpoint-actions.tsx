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
import { formatUpTo } from '../ui/format.ts';
import { Notice } from '../ui/notice.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { EndpointReplayDialog } from './endpoint-replay-dialog.tsx';
import { TestEventDialog } from './test-event-dialog.tsx';

export function EndpointActions({ endpoint }: { endpoint: Endpoint }) {
  const { canEditEndpoints, canReplay } = usePermissions();
  const [dialog, setDialog] = useState<'test' | 'delete' | 'disable' | 'replay' | 'recover' | null>(null);
  if (!canEditEndpoints && !canReplay) return null;
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
      {canEditEndpoints && (
        <>
          <Button icon="send" kind="primary" disabled={!enabled} onClick={() => setDialog('test')}>
            Send test event
          </Button>
          {enabled && !paused && health.circuit !== 'closed' && (
            <Button
              onClick={() =>
                void run(
                  callApi('POST', `/v1/endpoints/${id}/probe`),
                  'Sending one request: if it succeeds, the circuit closes',
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
          {enabled ? (
            <Button onClick={() => setDialog('disable')}>Disable…</Button>
          ) : (
            <Button
              onClick={() =>
                void run(callApi('PATCH', `/v1/endpoints/${id}`, { enabled: true }), 'Enabled').then(() => {
                  if (canReplay && endpoint.health.skipped_while_disabled > 0) setDialog('recover');
                })
              }
            >
              Enable
            </Button>
          )}
        </>
      )}
      {canReplay && (
        <Button icon="replay" disabled={!enabled} onClick={() => setDialog('replay')}>
          Replay…
        </Button>
      )}
      {canEditEndpoints && (
        <Button icon="trash" kind="danger" label="Delete endpoint" onClick={() => setDialog('delete')} />
      )}
      {dialog === 'test' && <TestEventDialog endpoint={endpoint} onClose={closeDialog} />}
      {dialog === 'disable' && <DisableDialog endpoint={endpoint} run={run} onClose={closeDialog} />}
      {(dialog === 'replay' || dialog === 'recover') && (
        <EndpointReplayDialog endpoint={endpoint} isRecovery={dialog === 'recover'} onClose={closeDialog} />
      )}
      {dialog === 'delete' && <DeleteDialog endpoint={endpoint} onClose={closeDialog} />}
    </>
  );
}

interface DialogProps {
  endpoint: Endpoint;
  onClose: () => void;
}

type Run = (request: Promise<unknown>, confirmation: string) => Promise<void>;

function DisableDialog({ endpoint, run, onClose }: DialogProps & { run: Run }) {
  const { id, paused, health } = endpoint;
  const { waiting, count_limit: limit } = health;
  return (
    <FormDialog
      title="Disable this endpoint?"
      submitLabel="Disable endpoint"
      danger
      onClose={onClose}
      onSubmit={async () => {
        await callApi('PATCH', `/v1/endpoints/${id}`, { enabled: false });
        invalidate('/v1/endpoints');
        showToast('Disabled: new events are skipped');
        onClose();
      }}
    >
      <Notice tone={waiting > 0 ? 'warn' : 'info'}>
        {waiting === 0
          ? 'No deliveries wait for it now.'
          : `${formatUpTo(waiting, limit)} ${waiting === 1 ? 'delivery waits' : 'deliveries wait'} for it and will be skipped.`}
      </Notice>
      <p>
        Posthorn sends nothing to <strong>{nameEndpoint(endpoint).name}</strong> while it is disabled. Events
        that match it are recorded as skipped. When you enable it again, you can replay them.
      </p>
      {!paused && (
        <div className="row wrap">
          <span className="soft">If you want deliveries to wait, pause the endpoint.</span>
          <Button
            icon="pause"
            onClick={() => {
              onClose();
              void run(
                callApi('POST', `/v1/endpoints/${id}/pause`),
                'Paused: deliveries wait until you resume it',
              );
            }}
          >
            Pause instead
          </Button>
        </div>
      )}
    </FormDialog>
  );
}

function DeleteDialog({ endpoint, onClose }: DialogProps) {
  const { waiting, count_limit: limit } = endpoint.health;
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
        <Notice tone="warn">
          {formatUpTo(waiting, limit)} {waiting === 1 ? 'delivery is' : 'deliveries are'} waiting for it.
        </Notice>
      )}
    </FormDialog>
  );
}
