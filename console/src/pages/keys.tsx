import { useState } from 'react';
import { call, withQuery } from '../api/client.ts';
import { usePages } from '../api/pages.ts';
import { useMay, useSession } from '../api/session.ts';
import type { ApiKey, Scope } from '../api/types.ts';
import { Badge, Button, Card, Copy, Empty, Notice, PageHead } from '../ui/basics.tsx';
import { Dialog, FormDialog } from '../ui/dialog.tsx';
import { errorAt, SelectField, TextField } from '../ui/fields.tsx';
import { PagedTable } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { usePageTitle } from '../ui/title.ts';
import { toast } from '../ui/toasts.tsx';

const SCOPES = [
  ['tenant', 'Tenant: everything of one tenant'],
  ['read', 'Read-only: look, change nothing'],
  ['admin', 'Admin: everything'],
] as const;
const TONES = { admin: 'accent', tenant: 'info', read: 'mute' } as const;

export function KeysPage() {
  usePageTitle('API keys');
  const may = useMay();
  if (!may.admin)
    return (
      <Notice tone="warn" title="For admin keys">
        Keys are made and revoked with an admin key.
      </Notice>
    );
  return <Keys />;
}

function Keys() {
  const { shownTenant } = useSession();
  const list = usePages<ApiKey>(withQuery('/v1/keys', { tenant: shownTenant }), ({ id }) => id);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<ApiKey | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  return (
    <>
      <PageHead title="API keys">
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          Make a key
        </Button>
      </PageHead>
      <Card>
        <PagedTable
          label="API keys"
          list={list}
          keyOf={({ id }) => id}
          rowHeight={51}
          empty={
            <Empty icon="keys" title="No keys besides the first one">
              The admin key of the configuration is not listed. Give your applications keys of their own, so
              that each can be revoked.
            </Empty>
          }
          columns={[
            {
              name: 'Key',
              cell: ({ prefix, description }) => (
                <span className="cell-two">
                  <span className="mono">{prefix}…</span>
                  <span className="small faint truncate">{description}</span>
                </span>
              ),
            },
            { name: 'Scope', width: 96, cell: ({ scope }) => <Badge tone={TONES[scope]}>{scope}</Badge> },
            {
              name: 'Tenant',
              width: 140,
              wideOnly: true,
              cell: ({ tenant }) => tenant ?? <span className="faint">every tenant</span>,
            },
            {
              name: 'Last used',
              width: 110,
              wideOnly: true,
              cell: ({ last_used_at }) =>
                last_used_at === null ? <span className="faint">never</span> : <Ago at={last_used_at} />,
            },
            { name: 'Made', width: 110, wideOnly: true, cell: ({ created_at }) => <Ago at={created_at} /> },
            {
              name: 'Actions',
              width: 96,
              head: <span className="sr-only">Actions</span>,
              num: true,
              cell: (key) => (
                <Button kind="small danger" onClick={() => setRevoking(key)}>
                  Revoke
                </Button>
              ),
            },
          ]}
        />
      </Card>
      {making && (
        <NewKeyDialog
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMaking(false);
            setMade(key);
            void list.refresh();
          }}
        />
      )}
      {made !== null && (
        <Dialog title="Your new key" onClose={() => setMade(null)}>
          <div className="dialog-body">
            <Notice tone="warn" title="Copy it now">
              It is not stored, and cannot be shown again.
            </Notice>
            <Copy text={made.key!} label="the key" />
          </div>
          <div className="dialog-foot">
            <Button kind="primary" onClick={() => setMade(null)}>
              I have it
            </Button>
          </div>
        </Dialog>
      )}
      {revoking !== null && (
        <FormDialog
          title="Revoke this key?"
          submit="Revoke key"
          danger
          onClose={() => setRevoking(null)}
          onSubmit={async () => {
            await call('DELETE', `/v1/keys/${revoking.id}`);
            toast('Revoked');
            setRevoking(null);
            await list.refresh();
          }}
        >
          <p>
            Whoever uses <code>{revoking.prefix}…</code> is refused from that moment on.
          </p>
        </FormDialog>
      )}
    </>
  );
}

function NewKeyDialog({ onClose, onMade }: { onClose: () => void; onMade: (key: ApiKey) => void }) {
  const { shownTenant } = useSession();
  const [scope, setScope] = useState<Scope>('tenant');
  const [tenant, setTenant] = useState(shownTenant ?? '');
  const [description, setDescription] = useState('');
  return (
    <FormDialog
      title="Make a key"
      submit="Make key"
      onClose={onClose}
      onSubmit={async () =>
        onMade(
          await call<ApiKey>('POST', '/v1/keys', {
            scope,
            ...(scope !== 'admin' && tenant.trim() !== '' && { tenant: tenant.trim() }),
            ...(description !== '' && { description }),
          }),
        )
      }
    >
      {(error) => (
        <>
          <SelectField
            label="Scope"
            value={scope}
            onChange={setScope}
            options={SCOPES}
            error={errorAt(error?.errors ?? [], 'scope')}
          />
          {scope !== 'admin' && (
            <TextField
              label="Tenant"
              value={tenant}
              onChange={setTenant}
              hint={scope === 'read' ? 'Empty: every tenant.' : undefined}
              error={errorAt(error?.errors ?? [], 'tenant')}
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
