import type { Inbox, Page } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { navigate } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button, LinkButton } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { formatCount, shortenUrl } from '../ui/format.ts';
import { HttpStatusBadge } from '../ui/http-status-badge.tsx';
import { ErrorNotice, Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { showError } from '../ui/toasts.tsx';

export function InboxesPage() {
  usePageTitle('Inbox');
  const { canEditInboxes } = usePermissions();
  const { selectedTenant } = useSession();
  const path = withQuery('/v1/inboxes', { tenant: selectedTenant });
  const { data, error, refresh } = useQuery<Page<Inbox>>(path, { pollMs: 2_000 });
  if (error?.status === 404)
    return (
      <Notice title="The inbox is turned off">
        The built-in receiver is for development. Set POSTHORN_INBOX=true to turn it on.
      </Notice>
    );
  return (
    <>
      <PageHeader
        title="Inbox"
        below={
          <p className="soft">
            Temporary receivers inside Posthorn. See requests as a receiver sees them, and choose the answer.
          </p>
        }
      >
        <ExportButton path={path} name="inboxes" isPaged={false} />
        {canEditInboxes && <NewInboxButton />}
      </PageHeader>
      <Card>
        {error !== null && data === undefined ? (
          <ErrorNotice error={error} onRetry={refresh} />
        ) : (
          <Table
            label="Inboxes"
            rows={data?.data}
            getKey={({ token }) => token}
            getLink={({ token }) => `/inbox/${token}`}
            empty={
              <EmptyState
                icon="inbox"
                title="No inboxes yet"
                actions={
                  canEditInboxes && (
                    <>
                      <NewInboxButton />
                      <LinkButton to="/start">Guided start</LinkButton>
                    </>
                  )
                }
              >
                Posthorn deletes an inbox a day after its last use, unless an endpoint delivers to it.
              </EmptyState>
            }
            columns={COLUMNS}
          />
        )}
      </Card>
    </>
  );
}

export const createInbox = (tenant: string | null): Promise<Inbox> =>
  callApi<Inbox>('POST', '/v1/inboxes', tenant === null ? {} : { tenant });

function NewInboxButton() {
  const { selectedTenant } = useSession();
  const [isBusy, setBusy] = useState(false);
  const create = async (): Promise<void> => {
    setBusy(true);
    try {
      const { token } = await createInbox(selectedTenant);
      navigate(`/inbox/${token}`);
    } catch (error) {
      showError(error);
      setBusy(false);
    }
  };
  return (
    <Button kind="primary" icon="plus" disabled={isBusy} onClick={() => void create()}>
      New inbox
    </Button>
  );
}

const COLUMNS: readonly Column<Inbox>[] = [
  { name: 'URL', isLink: true, render: ({ url }) => <span className="mono">{shortenUrl(url)}</span> },
  { name: 'Tenant', width: 120, hideOnPhone: true, render: ({ tenant }) => tenant },
  {
    name: 'Answer',
    width: 110,
    render: ({ answer }) =>
      answer.reset ? <Badge tone="bad">reset</Badge> : <HttpStatusBadge code={answer.status} />,
  },
  { name: 'Received', width: 90, isNumeric: true, render: ({ received }) => formatCount(received) },
  {
    name: 'Created',
    width: 110,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ created_at }) => <Ago at={created_at} />,
  },
];
