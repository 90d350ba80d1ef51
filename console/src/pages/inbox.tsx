/** One inbox of the built-in receiver: the requests it received, and how it answers. */
import type { Endpoint, Inbox, InboxRequest, Page } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { invalidate, useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { plural } from '../ui/format.ts';
import { ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { useQueryRange } from '../ui/query-range.ts';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';
import { showError, showToast } from '../ui/toasts.tsx';
import { InboxAnswerCard } from './inbox-answer.tsx';
import { createInboxEndpoint } from './inbox-endpoint.ts';
import { InboxRequestRow } from './inbox-request-row.tsx';

export function InboxPage({ token }: { token: string }) {
  usePageTitle('Inbox');
  const { canEditInboxes } = usePermissions();
  const { data: inbox, error, refresh } = useQuery<Inbox>(`/v1/inboxes/${token}`, { pollMs: 1_000 });
  const { range } = useQueryRange();
  const requestsPath = withQuery(`/v1/inboxes/${token}/requests`, { ...range });
  const requests = useQuery<Page<InboxRequest>>(requestsPath, { pollMs: 1_000 });
  const endpoint = useInboxEndpoint(inbox);
  if (inbox === undefined && error !== null)
    return <ErrorPage title="Inbox" error={error} onRetry={refresh} />;
  return (
    <>
      <PageHeader
        crumb={<Link to="/inbox">Inbox</Link>}
        title={inbox === undefined ? 'Inbox' : <CopyButton text={inbox.url} label="the URL" />}
        below={
          <div className="row wrap small faint" style={{ minHeight: 24 }}>
            {inbox !== undefined && <span>{plural(inbox.received, 'request')} received</span>}
            {endpoint != null && <Link to={`/endpoints/${endpoint.id}`}>Show its endpoint</Link>}
          </div>
        }
      >
        {canEditInboxes && inbox !== undefined && <InboxActions inbox={inbox} endpoint={endpoint} />}
      </PageHeader>
      <div className="grid aside">
        <Card
          title="Requests"
          actions={
            <span className="row wrap">
              <TimeRangeFilter />
              <ExportButton path={requestsPath} name="inbox-requests" isPaged={false} />
            </span>
          }
        >
          {requests.data?.data.length === 0 ? (
            <EmptyState
              icon="inbox"
              title={inbox?.received ? 'No requests in this time range' : 'No requests yet'}
            >
              {endpoint == null
                ? 'Create an endpoint with this URL, or send a request to it with curl.'
                : 'Send a test event: it appears here.'}
            </EmptyState>
          ) : (
            requests.data?.data.map((request, index) => (
              <InboxRequestRow key={request.number} request={request} isInitiallyOpen={index === 0} />
            ))
          )}
        </Card>
        {inbox !== undefined && <InboxAnswerCard inbox={inbox} />}
      </div>
    </>
  );
}

/** The endpoint that sends to the inbox; null if no endpoint does, undefined while loading. */
function useInboxEndpoint(inbox: Inbox | undefined): Endpoint | null | undefined {
  const { data } = useQuery<Page<Endpoint>>(
    inbox === undefined ? null : withQuery('/v1/endpoints', { tenant: inbox.tenant, limit: 250 }),
  );
  return data && (data.data.find(({ url }) => url === inbox?.url) ?? null);
}

interface InboxActionsProps {
  inbox: Inbox;
  endpoint: Endpoint | null | undefined;
}

function InboxActions({ inbox, endpoint }: InboxActionsProps) {
  const [isConnecting, setConnecting] = useState(false);
  const sendTestEvent = (endpointId: string): Promise<void> =>
    callApi('POST', `/v1/endpoints/${endpointId}/test`, {}).then(
      () => showToast('Test event sent'),
      showError,
    );
  const clearRequests = (): Promise<void> =>
    callApi('DELETE', `/v1/inboxes/${inbox.token}/requests`).then(
      () => invalidate(`/v1/inboxes/${inbox.token}`),
      showError,
    );
  return (
    <>
      {endpoint === null && (
        <Button kind="primary" icon="plus" onClick={() => setConnecting(true)}>
          Create endpoint
        </Button>
      )}
      {endpoint != null && (
        <Button kind="primary" icon="send" onClick={() => void sendTestEvent(endpoint.id)}>
          Send test event
        </Button>
      )}
      <Button onClick={() => void clearRequests()}>Clear</Button>
      {isConnecting && <ConnectDialog inbox={inbox} onClose={() => setConnecting(false)} />}
    </>
  );
}

function ConnectDialog({ inbox, onClose }: { inbox: Inbox; onClose: () => void }) {
  return (
    <FormDialog
      title="Create an endpoint for this inbox"
      submitLabel="Create endpoint"
      onClose={onClose}
      onSubmit={async () => {
        await createInboxEndpoint(inbox, { description: 'Inbox' });
        showToast('Endpoint added. It receives every event of the tenant.');
        onClose();
      }}
    >
      <p className="soft">
        The endpoint subscribes to every event of <strong>{inbox.tenant}</strong>. Its retries (after 2, 3 and
        4 seconds) and its circuit breaker (open for 4 seconds) are short, so that you can watch them.
      </p>
    </FormDialog>
  );
}
