import type { AuditEntry } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useQuery } from '../api/query.ts';
import { useSession } from '../api/session.ts';
import { Link, navigate, useLocation } from '../router.tsx';
import { nameActor } from '../ui/actor-name.ts';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { useEndpointNames } from '../ui/endpoint-name.ts';
import { ExportButton } from '../ui/export-button.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { plural } from '../ui/format.ts';
import { findIdLink } from '../ui/id-links.ts';
import { Notice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { useQueryRange } from '../ui/query-range.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago, At } from '../ui/time.tsx';
import { TimeRangeFilter } from '../ui/time-range-fields.tsx';

export function AuditLogPage() {
  usePageTitle('Audit log');
  const { selectedTenant } = useSession();
  const { query } = useLocation();
  const { range } = useQueryRange();
  const path = withQuery('/v1/audit', {
    action: query.get('action'),
    actor: query.get('actor'),
    object_id: query.get('object_id'),
    ...range,
    tenant: selectedTenant,
  });
  const list = usePagedList<AuditEntry>(path, ({ id }) => id, { pollMs: 10_000 });
  const isFiltered = [...query.keys()].length > 0;
  const actions = useActionOptions();
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
          <div className="filters">
            <FilterSelect name="action" label="Action" options={actions} />
            <FilterInput name="object_id" label="Object" placeholder="Object: ep_…, key_…" />
            <FilterInput name="actor" label="By" placeholder="By: key_…, user:… or admin" />
            <TimeRangeFilter />
            <ExportButton path={path} name="audit-log" />
            {isFiltered && (
              <Button kind="quiet" onClick={() => navigate('/audit')}>
                Clear
              </Button>
            )}
          </div>
          <PagedTable
            label="Audit log"
            list={list}
            getKey={({ id }) => id}
            empty={
              <EmptyState icon="audit" title={isFiltered ? 'No change matches' : 'No changes yet'}>
                The audit log records every change made through the API, and who made it.
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

const ANY_ACTION = ['', 'Any action'] as const;

interface ApiDocument {
  readonly paths: Record<
    string,
    { readonly get?: { readonly parameters?: readonly { name: string; schema: { enum?: string[] } }[] } }
  >;
}

/** The actions that the API knows, from its own description. */
function useActionOptions(): readonly (readonly [string, string])[] {
  const { data } = useQuery<ApiDocument>('/openapi.json');
  const parameters = data?.paths['/v1/audit']?.get?.parameters ?? [];
  const actions = parameters.find(({ name }) => name === 'action')?.schema.enum ?? [];
  return [ANY_ACTION, ...actions.map((action) => [action, action] as const)];
}

const buildColumns = (onOpen: (entry: AuditEntry) => void): Column<AuditEntry>[] => [
  { name: 'Time', width: 104, render: ({ created_at }) => <Ago at={created_at} /> },
  { name: 'Action', render: ({ action }) => <span className="mono">{action}</span> },
  {
    name: 'By',
    width: '18%',
    hideOnPhone: true,
    render: ({ actor }) => {
      const { name, isKey } = nameActor(actor);
      return (
        <span className={isKey ? 'soft mono' : 'soft'} title={actor.id}>
          {name}
        </span>
      );
    },
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
          <At at={entry.created_at} /> · {nameActor(entry.actor).name}
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
  const nameEndpoint = useEndpointNames();
  if (id === null) return <span className="faint">{type}</span>;
  const link = findIdLink(id);
  if (link === null) return <span className="mono faint">{id}</span>;
  const { name } = nameEndpoint(id);
  return (
    <Link to={link.to} className={name === id ? 'mono' : ''} title={id}>
      {name}
    </Link>
  );
}
