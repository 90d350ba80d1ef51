import type { Delivery, Notifier } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { asApiError } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { CreateNotifierDialog } from './create-notifier-dialog.tsx';

const STATUSES = {
  active: ['good', 'active'],
  unconfirmed: ['warn', 'not confirmed'],
  disabled: ['mute', 'disabled'],
} as const;

type OpenDialog = { readonly kind: 'create' } | { readonly kind: 'delete'; readonly notifier: Notifier };

export function NoticesPage() {
  usePageTitle('Notices');
  const { selectedTenant } = useSession();
  const { canEditEndpoints } = usePermissions();
  const path = withQuery('/v1/notifiers', { tenant: selectedTenant });
  const list = usePagedList<Notifier>(path, ({ id }) => id);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = (): void => setDialog(null);
  return (
    <>
      <PageHeader title="Notices">
        <ExportButton path={path} name="notifiers" />
        {canEditEndpoints && (
          <Button kind="primary" icon="plus" onClick={() => setDialog({ kind: 'create' })}>
            Create notifier
          </Button>
        )}
      </PageHeader>
      <Card>
        <PagedTable
          label="Notifiers"
          list={list}
          getKey={({ id }) => id}
          rowHeight={TALL_ROW}
          empty={
            <EmptyState icon="notices" title="Nobody gets notices yet">
              A notifier tells a chat or an e-mail address when endpoints fail or are disabled, and when
              deliveries become dead letters.
            </EmptyState>
          }
          columns={buildColumns(canEditEndpoints, (notifier) => setDialog({ kind: 'delete', notifier }))}
        />
      </Card>
      {dialog?.kind === 'create' && (
        <CreateNotifierDialog
          onClose={closeDialog}
          onCreated={({ status, address }) => {
            closeDialog();
            showToast(
              status === 'unconfirmed'
                ? `A link was sent to ${address}. Open it to confirm.`
                : 'Notifier created',
            );
            void list.refresh();
          }}
        />
      )}
      {dialog?.kind === 'delete' && (
        <DeleteDialog
          notifier={dialog.notifier}
          onClose={closeDialog}
          onDeleted={() => {
            closeDialog();
            void list.refresh();
          }}
        />
      )}
    </>
  );
}

const targetOf = ({ url, address }: Notifier): string => address ?? url ?? '';

const buildColumns = (
  canEditEndpoints: boolean,
  onDelete: (notifier: Notifier) => void,
): Column<Notifier>[] => [
  {
    name: 'Notifier',
    render: (notifier) => {
      const target = <span className="mono">{targetOf(notifier)}</span>;
      return notifier.description === '' ? (
        target
      ) : (
        <TwoLineCell first={notifier.description} second={target} />
      );
    },
  },
  {
    name: 'Kind',
    width: 100,
    hideOnPhone: true,
    render: ({ kind }) => (kind === 'email' ? 'e-mail' : 'chat'),
  },
  {
    name: 'Reports',
    width: 190,
    hideOnPhone: true,
    render: ({ operator, tenant, events }) => (
      <TwoLineCell first={operator ? 'all tenants' : tenant} second={events.join(', ')} />
    ),
  },
  {
    name: 'Status',
    width: 130,
    hideOnPhone: true,
    render: ({ status }) => {
      const [tone, text] = STATUSES[status];
      return <Badge tone={tone}>{text}</Badge>;
    },
  },
  { name: 'Created', width: 110, hideOnPhone: true, render: ({ created_at }) => <Ago at={created_at} /> },
  {
    name: 'Actions',
    width: 170,
    head: HIDDEN_ACTIONS_HEAD,
    isNumeric: true,
    render: (notifier) =>
      canEditEndpoints && (
        <>
          {notifier.status === 'active' && <TestButton notifier={notifier} />}{' '}
          <Button kind="small danger" onClick={() => onDelete(notifier)}>
            Delete
          </Button>
        </>
      ),
  },
];

/** Sends a test message, and then leads to its delivery. */
function TestButton({ notifier }: { notifier: Notifier }) {
  const [delivery, setDelivery] = useState<Delivery | null>(null);
  const send = async (): Promise<void> => {
    try {
      setDelivery(await callApi<Delivery>('POST', `/v1/notifiers/${notifier.id}/test`));
      showToast(`Sending a test message to ${targetOf(notifier)}`);
    } catch (error) {
      showToast(asApiError(error).message, { tone: 'bad' });
    }
  };
  if (delivery !== null) return <Link to={`/deliveries/${delivery.id}`}>See result</Link>;
  return (
    <Button kind="small" onClick={() => void send()}>
      Test
    </Button>
  );
}

interface DeleteDialogProps {
  notifier: Notifier;
  onClose: () => void;
  onDeleted: () => void;
}

function DeleteDialog({ notifier, onClose, onDeleted }: DeleteDialogProps) {
  return (
    <FormDialog
      title="Delete this notifier?"
      submitLabel="Delete notifier"
      danger
      onClose={onClose}
      onSubmit={async () => {
        await callApi('DELETE', `/v1/notifiers/${notifier.id}`);
        showToast('Notifier deleted');
        onDeleted();
      }}
    >
      <p>
        Posthorn sends no further notices to <code>{targetOf(notifier)}</code>, and skips messages that wait.
      </p>
    </FormDialog>
  );
}
