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
import { findFieldError, SelectField, TextField } from '../ui/fields.tsx';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

const SCOPES = [
  ['tenant', 'Tenant: read and write for one tenant'],
  ['read', 'Read-only: for one tenant or all'],
  ['admin', 'Admin: everything'],
] as const;
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
  const list = usePagedList<Key>(withQuery('/v1/keys', { tenant: selectedTenant }), ({ id }) => id);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = (): void => setDialog(null);
  return (
    <>
      <PageHeader title="API keys">
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
            <EmptyState icon="keys" title="No keys besides the first admin key">
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
  { name: 'Scope', width: 96, render: ({ scope }) => <Badge tone={TONES[scope]}>{scope}</Badge> },
  {
    name: 'Tenant',
    width: 140,
    hideOnPhone: true,
    render: ({ tenant }) => tenant ?? <span className="faint">all tenants</span>,
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

interface CreateKeyDialogProps {
  onClose: () => void;
  onCreated: (key: CreatedKey) => void;
}

function CreateKeyDialog({ onClose, onCreated }: CreateKeyDialogProps) {
  const { selectedTenant } = useSession();
  const [scope, setScope] = useState<Key['scope']>('tenant');
  const [tenant, setTenant] = useState(selectedTenant ?? '');
  const [description, setDescription] = useState('');
  const create = async (): Promise<void> =>
    onCreated(
      await callApi<CreatedKey>('POST', '/v1/keys', {
        scope,
        ...(scope !== 'admin' && tenant.trim() !== '' && { tenant: tenant.trim() }),
        ...(description !== '' && { description }),
      }),
    );
  return (
    <FormDialog title="Create a key" submitLabel="Create key" onClose={onClose} onSubmit={create}>
      {(error) => (
        <>
          <SelectField
            label="Scope"
            value={scope}
            onChange={setScope}
            options={SCOPES}
            error={findFieldError(error?.errors ?? [], 'scope')}
          />
          {scope !== 'admin' && (
            <TextField
              label="Tenant"
              value={tenant}
              onChange={setTenant}
              hint={scope === 'read' ? 'If empty, the key can read all tenants.' : undefined}
              error={findFieldError(error?.errors ?? [], 'tenant')}
            />
          )}
          <TextField
            label="Description"
            value={description}
            onChange={setDescription}
            placeholder="Billing service"
          />
        </>
      )}
    </FormDialog>
  );
}
