import type { EventType } from '@posthorn/client';
import { useState } from 'react';
import { usePagedList } from '../api/paged-list.ts';
import { type Permissions, usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { JsonBlock } from '../ui/code-block.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { EventTypeForm } from './event-type-form.tsx';
import { PublishDialog } from './publish-dialog.tsx';

/** The dialog that is open, and the event type it is about. */
type OpenDialog =
  | { readonly kind: 'show' | 'publish' | 'edit'; readonly type: EventType }
  | { readonly kind: 'add' };

export function EventTypesPage() {
  usePageTitle('Event types');
  const permissions = usePermissions();
  const list = usePagedList<EventType>('/v1/event-types', ({ name }) => name);
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = (): void => {
    setDialog(null);
    void list.refresh();
  };
  return (
    <>
      <PageHeader
        title="Event types"
        below={
          <p className="soft">
            A catalogue for your consumers: the types of events, what they mean, and what their data looks
            like.
          </p>
        }
      >
        {permissions.isAdmin && (
          <Button kind="primary" icon="plus" onClick={() => setDialog({ kind: 'add' })}>
            Add event type
          </Button>
        )}
      </PageHeader>
      <Card>
        <PagedTable
          label="Event types"
          list={list}
          getKey={({ name }) => name}
          rowHeight={TALL_ROW}
          empty={
            <EmptyState icon="types" title="The catalogue is empty">
              You can publish events of any type without it. A type in the catalogue has a description, and an
              example that Posthorn checks against its schema.
            </EmptyState>
          }
          columns={buildColumns(permissions, setDialog)}
        />
      </Card>
      {dialog !== null && <TypeDialog dialog={dialog} onClose={closeDialog} />}
    </>
  );
}

const buildColumns = (
  { canWrite, isAdmin }: Permissions,
  onOpen: (dialog: OpenDialog) => void,
): Column<EventType>[] => [
  {
    name: 'Type',
    render: ({ name, description }) => (
      <TwoLineCell
        first={
          <Link className="mono" to={`/event-types/${encodeURIComponent(name)}`}>
            {name}
          </Link>
        }
        second={description}
      />
    ),
  },
  { name: 'State', width: 130, hideOnPhone: true, render: (type) => <StateBadge type={type} /> },
  {
    name: 'Actions',
    width: canWrite ? 220 : 96,
    head: HIDDEN_ACTIONS_HEAD,
    render: (type) => (
      <span className="row" style={{ justifyContent: 'flex-end' }}>
        <Button kind="small" onClick={() => onOpen({ kind: 'show', type })}>
          Show
        </Button>
        {canWrite && (
          <Button kind="small" onClick={() => onOpen({ kind: 'publish', type })}>
            Publish
          </Button>
        )}
        {isAdmin && (
          <Button kind="small" onClick={() => onOpen({ kind: 'edit', type })}>
            Edit
          </Button>
        )}
      </span>
    ),
  },
];

function StateBadge({ type: { deprecated, schema } }: { type: EventType }) {
  if (deprecated) return <Badge tone="warn">Deprecated</Badge>;
  return schema === null ? <Badge>No schema</Badge> : <Badge tone="good">Schema</Badge>;
}

function TypeDialog({ dialog, onClose }: { dialog: OpenDialog; onClose: () => void }) {
  switch (dialog.kind) {
    case 'add':
      return <EventTypeForm onClose={onClose} />;
    case 'edit':
      return <EventTypeForm type={dialog.type} onClose={onClose} />;
    case 'show':
      return <TypeView type={dialog.type} onClose={onClose} />;
    case 'publish': {
      const { name, example } = dialog.type;
      return (
        <PublishDialog
          initialType={name}
          {...(example != null && { initialData: JSON.stringify(example, null, 2) })}
          onClose={onClose}
        />
      );
    }
  }
}

function TypeView({ type, onClose }: { type: EventType; onClose: () => void }) {
  return (
    <Dialog title={type.name} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="soft">{type.description}</p>
        <h3>Example</h3>
        <OptionalJson value={type.example} label="example" />
        <h3>JSON Schema</h3>
        <OptionalJson value={type.schema} label="schema" />
      </div>
    </Dialog>
  );
}

function OptionalJson({ value, label }: { value: unknown; label: string }) {
  if (value == null) return <p className="faint">None.</p>;
  return <JsonBlock text={JSON.stringify(value, null, 2)} label={label} />;
}
