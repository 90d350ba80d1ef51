import type { CreatedKey, Key } from '@posthorn/client';
import { useState } from 'react';
import { callApi, withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { CreateKeyDialog } from './create-key-dialog.tsx';

const TONES = { admin: 'accent', tenant: 'info', read: 'mute' } as const;

export function ApiKeysPage() {
  usePageTitle('API keys');
  const { isAdmin } = usePermissions();
  if (!isAdmin)
    return (
      <Notice tone="warn" title="Admin keys only">
        Only an admin key can create and revoke keys.
      </Notice>
    );
  return <KeyList />;
}

/** The dialog that is open, and the key it is about. */
type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'show'; readonly key: CreatedKey }
  | { readonly kind: 'revoke'; readonly key: Key };

function KeyList() {
  const { selectedTenant } = useSession();
  const path = withQuery('/v1/keys', { tenant: selectedTenant });
  const list = usePagedList<Key>(path, ({ id }) => id);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = (): void => setDialog(null);
  return (
    <>
      <PageHeader title="API keys">
        <ExportButton path={path} name="keys" />
        <Button kind="primary" icon="plus" onClick={() => setDialog({ kind: 'create' })}>
          Create key
        </Button>
      </PageHeader>
      <Card>
        <PagedTable
          label="API keys"
          list={list}
          getKey={({ id }) => id}
          rowHeight={TALL_ROW}
          empty={
            <EmptyState icon="keys" title="No keys yet">
              The admin key of the configuration is not listed. Create one key per application, so that you
              can revoke them one by one.
            </EmptyState>
          }
          columns={buildColumns((key) => setDialog({ kind: 'revoke', key }))}
        />
      </Card>
      {dialog?.kind === 'create' && (
        <CreateKeyDialog
          onClose={closeDialog}
          onCreated={(key) => {
            setDialog({ kind: 'show', key });
            void list.refresh();
          }}
        />
      )}
      {dialog?.kind === 'show' && <NewKeyDialog apiKey={dialog.key.key} onClose={closeDialog} />}
      {dialog?.kind === 'revoke' && (
        <RevokeDialog
          apiKey={dialog.key}
          onClose={closeDialog}
          onRevoked={() => {
            closeDialog();
            void list.refresh();
          }}
        />
      )}
    </>
  );
}

const buildColumns = (onRevoke: (key: Key) => void): Column<Key>[] => [
  {
    name: 'Key',
    render: ({ prefix, description }) => {
      const shownPrefix = <span className="mono">{prefix}…</span>;
      return description === '' ? shownPrefix : <TwoLineCell first={description} second={shownPrefix} />;
    },
  },
  {
    name: 'Scope',
    width: 200,
    phoneWidth: 110,
    render: ({ scope, scopes }) => {
      const badge = <Badge tone={TONES[scope]}>{scope}</Badge>;
      return scopes === null ? badge : <TwoLineCell first={badge} second={scopes.join(', ')} />;
    },
  },
  {
    name: 'Tenant',
    width: 140,
    hideOnPhone: true,
    render: ({ tenant }) => tenant ?? <span className="faint">all tenants</span>,
  },
  {
    name: 'Restrictions',
    width: 150,
    hideOnPhone: true,
    render: ({ expires_at, allowed_ips }) =>
      expires_at === null && allowed_ips === null ? (
        <span className="faint">none</span>
      ) : (
        <TwoLineCell
          first={expires_at === null ? 'never expires' : <Expiry at={expires_at} />}
          second={allowed_ips === null ? 'from everywhere' : allowed_ips.join(', ')}
        />
      ),
  },
  {
    name: 'Last used',
    width: 110,
    hideOnPhone: true,
    render: ({ last_used_at }) =>
      last_used_at === null ? <span className="faint">never</span> : <Ago at={last_used_at} />,
  },
  { name: 'Created', width: 110, hideOnPhone: true, render: ({ created_at }) => <Ago at={created_at} /> },
  {
    name: 'Actions',
    width: 96,
    head: HIDDEN_ACTIONS_HEAD,
    isNumeric: true,
    render: (key) => (
      <Button kind="small danger" onClick={() => onRevoke(key)}>
        Revoke
      </Button>
    ),
  },
];

function Expiry({ at }: { at: string }) {
  return (
    <>
      {Date.parse(at) <= Date.now() ? 'expired' : 'expires'} <Ago at={at} />
    </>
  );
}

function NewKeyDialog({ apiKey, onClose }: { apiKey: string; onClose: () => void }) {
  return (
    <Dialog title="Your new key" onClose={onClose}>
      <div className="dialog-body">
        <Notice tone="warn" title="Copy the key now">
          Posthorn stores only a hash of it and cannot show it again.
        </Notice>
        <CopyButton text={apiKey} label="the key" />
      </div>
      <div className="dialog-foot">
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

interface RevokeDialogProps {
  apiKey: Key;
  onClose: () => void;
  onRevoked: () => void;
}

function RevokeDialog({ apiKey, onClose, onRevoked }: RevokeDialogProps) {
  return (
    <FormDialog
      title="Revoke this key?"
      submitLabel="Revoke key"
      danger
      onClose={onClose}
      onSubmit={async () => {
        await callApi('DELETE', `/v1/keys/${apiKey.id}`);
        showToast('Key revoked');
        onRevoked();
      }}
    >
      <p>
        Posthorn rejects every request with <code>{apiKey.prefix}…</code> from now on.
      </p>
    </FormDialog>
  );
}
