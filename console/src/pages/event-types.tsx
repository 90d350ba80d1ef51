import type { EventType } from '@posthorn/client';
import { useState } from 'react';
import { usePagedList } from '../api/paged-list.ts';
import { type Permissions, usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, HIDDEN_ACTIONS_HEAD, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';
import { EventTypeForm } from './event-type-form.tsx';
import { PublishDialog } from './publish-dialog.tsx';

/** The dialog that is open, and the event type it is about. */
type OpenDialog = { readonly kind: 'publish' | 'edit'; readonly type: EventType } | { readonly kind: 'add' };

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
        <ExportButton path="/v1/event-types" name="event-types" />
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
  { canPublish, isAdmin }: Permissions,
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
  {
    name: 'Latest version',
    width: 140,
    hideOnPhone: true,
    render: ({ latest_version }) => <span className="mono">{latest_version ?? '–'}</span>,
  },
  { name: 'State', width: 130, hideOnPhone: true, render: (type) => <StateBadge type={type} /> },
  ...(canPublish
    ? [
        {
          name: 'Actions',
          width: isAdmin ? 160 : 96,
          head: HIDDEN_ACTIONS_HEAD,
          render: (type: EventType) => (
            <span className="row" style={{ justifyContent: 'flex-end' }}>
              <Button kind="small" onClick={() => onOpen({ kind: 'publish', type })}>
                Publish
              </Button>
              {isAdmin && (
                <Button kind="small" onClick={() => onOpen({ kind: 'edit', type })}>
                  Edit
                </Button>
              )}
            </span>
          ),
        },
      ]
    : []),
];

function StateBadge({ type: { deprecated, schema, latest_version } }: { type: EventType }) {
  if (deprecated) return <Badge tone="warn">Deprecated</Badge>;
  const hasSchema = schema !== null || latest_version !== null;
  return hasSchema ? <Badge tone="good">Schema</Badge> : <Badge>No schema</Badge>;
}

function TypeDialog({ dialog, onClose }: { dialog: OpenDialog; onClose: () => void }) {
  switch (dialog.kind) {
    case 'add':
      return <EventTypeForm onClose={onClose} />;
    case 'edit':
      return <EventTypeForm type={dialog.type} onClose={onClose} />;
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
