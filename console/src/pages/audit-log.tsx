import type { AuditEntry } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useSession } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { plural } from '../ui/format.ts';
import { findIdLink } from '../ui/id-links.ts';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago, At } from '../ui/time.tsx';

export function AuditLogPage() {
  usePageTitle('Audit log');
  const { selectedTenant } = useSession();
  const list = usePagedList<AuditEntry>(withQuery('/v1/audit', { tenant: selectedTenant }), ({ id }) => id, {
    pollMs: 10_000,
  });
  const [openEntry, setOpenEntry] = useState<AuditEntry | null>(null);
  return (
    <>
      <PageHeader title="Audit log" below={<p className="soft">Who changed what, and when.</p>} />
      {list.error?.status === 403 ? (
        <Notice tone="warn" title="This key cannot read the audit log">
          {list.error.message}
        </Notice>
      ) : (
        <Card>
          <PagedTable
            label="Audit log"
            list={list}
            getKey={({ id }) => id}
            empty={
              <EmptyState icon="audit" title="No changes yet">
                The audit log records every change made through the API, and the key that made it.
              </EmptyState>
            }
            columns={buildColumns(setOpenEntry)}
          />
        </Card>
      )}
      {openEntry !== null && <ChangesDialog entry={openEntry} onClose={() => setOpenEntry(null)} />}
    </>
  );
}

/** Posthorn itself disables endpoints by its rules. */
const nameOfActor = ({ id, prefix }: AuditEntry['actor']): string =>
  id === 'posthorn' ? 'Posthorn' : (prefix ?? 'first admin key');

const buildColumns = (onOpen: (entry: AuditEntry) => void): Column<AuditEntry>[] => [
  { name: 'Time', width: 104, render: ({ created_at }) => <Ago at={created_at} /> },
  { name: 'Action', render: ({ action }) => <span className="mono">{action}</span> },
  {
    name: 'Key',
    width: '18%',
    hideOnPhone: true,
    render: ({ actor }) => (
      <span className="soft" title={actor.id}>
        {actor.prefix === null ? nameOfActor(actor) : <span className="mono">{actor.prefix}…</span>}
      </span>
    ),
  },
  {
    name: 'Object',
    width: '30%',
    hideOnPhone: true,
    render: ({ object }) => <ObjectLink object={object} />,
  },
  {
    name: 'Tenant',
    width: 110,
    hideOnPhone: true,
    render: ({ tenant }) => <span className="soft">{tenant}</span>,
  },
  {
    name: 'Changes',
    width: 112,
    isNumeric: true,
    render: (entry) =>
      entry.changes.length === 0 ? null : (
        <Button kind="small" onClick={() => onOpen(entry)}>
          {plural(entry.changes.length, 'change')}
        </Button>
      ),
  },
];

function ChangesDialog({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  return (
    <Dialog title={entry.action} onClose={onClose} wide>
      <div className="dialog-body">
        <p className="small faint">
          <At at={entry.created_at} /> · {nameOfActor(entry.actor)}
          {entry.address !== '' && ` (${entry.actor.scope}) · from ${entry.address}`}
        </p>
        <dl className="facts">
          {entry.changes.map(({ field, before, after }) => (
            <div key={field} style={{ display: 'contents' }}>
              <dt className="mono">{field}</dt>
              <dd className="mono">
                {before !== undefined && <span className="bad">{JSON.stringify(before)}</span>}
                {before !== undefined && after !== undefined && ' → '}
                {after !== undefined && <span className="good">{JSON.stringify(after)}</span>}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}

function ObjectLink({ object: { id, type } }: { object: AuditEntry['object'] }) {
  if (id === null) return <span className="faint">{type}</span>;
  const link = findIdLink(id);
  if (link === null) return <span className="mono faint">{id}</span>;
  return (
    <Link to={link.to} className="mono">
      {id}
    </Link>
  );
}
