/** A tour in four steps: delivery, retries, circuit breaker, dead letter, replay. Uses the built-in receiver. */
import type { AcceptedEvent, Delivery, Endpoint, Inbox, InboxRequest, Page } from '@posthorn/client';
import { useEffect, useState } from 'react';
import { ApiError, callApi } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Link, navigate } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { showError, showToast } from '../ui/toasts.tsx';
import { linkToDelivery } from './delivery-list.tsx';
import { ActionButton, CreateStep, DeliverStep, FailStep, ReplayStep } from './guided-start-steps.tsx';

/** What the user has done so far. Kept in the tab's storage, so that leaving the page loses nothing. */
export interface Progress {
  readonly token?: string;
  readonly tenant?: string;
  readonly endpointId?: string;
  readonly firstEvent?: string;
  readonly secondEvent?: string;
  readonly replayed?: boolean;
}

/** The progress, and the state of what was created. */
export interface Tour {
  readonly progress: Progress;
  readonly inbox: Inbox | undefined;
  readonly endpoint: Endpoint | undefined;
  readonly requests: readonly InboxRequest[];
  readonly firstDelivery: Delivery | undefined;
  readonly secondDelivery: Delivery | undefined;
  /** The inbox or the endpoint was deleted. */
  readonly isDeleted: boolean;
  addProgress(changes: Progress): void;
  /** Deletes the endpoint and the inbox, and forgets the progress. */
  cleanUp(): Promise<void>;
  publish(order: number): Promise<AcceptedEvent>;
}

export function GuidedStartPage() {
  usePageTitle('Guided start');
  const { canEditInboxes, hasInbox } = usePermissions();
  if (!hasInbox)
    return (
      <Notice title="The inbox is turned off">
        The guided start needs the built-in receiver. Set POSTHORN_INBOX=true to turn it on.
      </Notice>
    );
  if (!canEditInboxes) return <Notice tone="warn">This key is read-only.</Notice>;
  return <GuidedStart />;
}

function GuidedStart() {
  const tour = useTour();
  const { progress, secondDelivery } = tour;
  const startOver = (): void => void tour.cleanUp().catch(showError);
  return (
    <>
      <PageHeader
        title="Guided start"
        below={
          <p className="soft">
            See one webhook arrive, see another one fail, and replay it. This takes about two minutes and
            needs no receiver.
          </p>
        }
      >
        {progress.token !== undefined && <Button onClick={startOver}>Start over</Button>}
      </PageHeader>
      {tour.isDeleted && (
        <Notice tone="warn" title="The inbox or its endpoint was deleted">
          <Button kind="small" onClick={startOver}>
            Start over
          </Button>
        </Notice>
      )}
      <ol className="steps">
        <CreateStep tour={tour} />
        <DeliverStep tour={tour} />
        <FailStep tour={tour} />
        <ReplayStep tour={tour} />
      </ol>
      {progress.replayed === true && secondDelivery?.status === 'delivered' && (
        <FinishNotice delivery={secondDelivery} cleanUp={tour.cleanUp} />
      )}
    </>
  );
}

function FinishNotice({ delivery, cleanUp }: { delivery: Delivery; cleanUp: Tour['cleanUp'] }) {
  const finish = async (): Promise<void> => {
    await cleanUp();
    showToast('Deleted the endpoint and the inbox of the tour');
    navigate('/');
  };
  return (
    <div style={{ marginTop: 14 }}>
      <Notice tone="good" title="The tour is complete">
        <Link to={linkToDelivery(delivery)}>Look at every attempt</Link>,{' '}
        <Link to="/endpoints/new">add your own endpoint</Link>, or go to the <Link to="/">overview</Link>.
        <p className="soft">The endpoint and the inbox of this tour are no longer needed.</p>
        <ActionButton onClick={finish}>Finish and clean up</ActionButton>
      </Notice>
    </div>
  );
}

const STORAGE_ITEM = 'posthorn.start';

function useProgress(): [Progress, (progress: Progress) => void] {
  const [progress, setProgress] = useState<Progress>(
    () => JSON.parse(sessionStorage.getItem(STORAGE_ITEM) ?? '{}') as Progress,
  );
  useEffect(() => sessionStorage.setItem(STORAGE_ITEM, JSON.stringify(progress)), [progress]);
  return [progress, setProgress];
}

function useTour(): Tour {
  const [progress, setProgress] = useProgress();
  const { token, tenant, endpointId, firstEvent, secondEvent } = progress;
  const inbox = useQuery<Inbox>(token === undefined ? null : `/v1/inboxes/${token}`, { pollMs: 1_000 });
  const endpoint = useQuery<Endpoint>(endpointId === undefined ? null : `/v1/endpoints/${endpointId}`, {
    pollMs: 1_000,
  });
  const requests = useQuery<Page<InboxRequest>>(
    token === undefined ? null : `/v1/inboxes/${token}/requests`,
    { pollMs: 700 },
  );
  return {
    progress,
    inbox: inbox.data,
    endpoint: endpoint.data,
    requests: requests.data?.data ?? [],
    firstDelivery: useDelivery(firstEvent),
    secondDelivery: useDelivery(secondEvent),
    isDeleted: inbox.error?.status === 404 || endpoint.error?.status === 404,
    addProgress: (changes) => setProgress({ ...progress, ...changes }),
    cleanUp: async () => {
      if (endpointId !== undefined) await deleteIfExists(`/v1/endpoints/${endpointId}`);
      if (token !== undefined) await deleteIfExists(`/v1/inboxes/${token}`);
      invalidate('/v1/endpoints', '/v1/inboxes');
      setProgress({});
    },
    publish: (order) =>
      callApi<AcceptedEvent>('POST', '/v1/events', {
        type: 'order.created',
        data: { order, amount: 120 },
        tenant,
        endpoint_ids: [endpointId],
      }),
  };
}

async function deleteIfExists(path: string): Promise<void> {
  await callApi('DELETE', path).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}

function useDelivery(eventId: string | undefined): Delivery | undefined {
  return useQuery<Page<Delivery>>(eventId === undefined ? null : `/v1/events/${eventId}/deliveries`, {
    pollMs: 700,
  }).data?.data[0];
}
