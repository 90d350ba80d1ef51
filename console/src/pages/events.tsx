import type { Event as EventSummary } from '@posthorn/client';
import { type FormEvent, useEffect, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { navigate, setQuery, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { FilterInput } from '../ui/filter-input.tsx';
import { formatCount } from '../ui/format.ts';
import { findIdLink } from '../ui/id-links.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { PublishDialog } from './publish-dialog.tsx';

export function EventsPage() {
  usePageTitle('Events');
  const { canWrite, canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const { query } = useLocation();
  const [isPublishing, setPublishing] = useState(query.get('publish') === '1');
  const since = useSince(query.get('hours') ?? '');
  const path = withQuery('/v1/events', {
    type: query.get('type'),
    has: query.get('has'),
    idempotency_key: query.get('idempotency_key'),
    since: query.get('since') ?? since,
    until: query.get('until'),
    tenant: selectedTenant,
  });
  const list = usePagedList<EventSummary>(path, ({ id }) => id, { pollMs: 3_000 });
  const isFiltered = ['type', 'has', 'idempotency_key', 'hours', 'since', 'until'].some((name) =>
    query.get(name),
  );
  const publishButton = canWrite && (
    <Button kind="primary" icon="send" onClick={() => setPublishing(true)}>
      Publish event
    </Button>
  );
  return (
    <>
      <PageHeader title="Events">{publishButton}</PageHeader>
      <Card>
        <EventFilters isFiltered={isFiltered} />
        <PagedTable
          label="Events"
          list={list}
          getKey={({ id }) => id}
          getLink={({ id }) => `/events/${id}`}
          columns={buildColumns(canSeeAllTenants && selectedTenant === null)}
          empty={
            isFiltered ? (
              <NoMatch />
            ) : (
              <EmptyState icon="events" title="No events yet" actions={publishButton}>
                Your application publishes events with POST /v1/events. You can also publish one here.
              </EmptyState>
            )
          }
        />
      </Card>
      {isPublishing && (
        <PublishDialog
          onClose={() => {
            setPublishing(false);
            setQuery({ publish: null });
          }}
        />
      )}
    </>
  );
}

/** The start of a period that ends now. Fixed when the user chooses it, because a moving start would reload the list. */
function useSince(hours: string): string | undefined {
  const [since, setSince] = useState<string | undefined>(undefined);
  useEffect(
    () => setSince(hours === '' ? undefined : new Date(Date.now() - Number(hours) * 3_600_000).toISOString()),
    [hours],
  );
  return since;
}

function NoMatch() {
  return (
    <EmptyState
      icon="search"
      title="No event matches"
      actions={<Button onClick={() => navigate('/events')}>Show all events</Button>}
    >
      Types must match exactly. By default, idempotency keys expire after 24 hours.
    </EmptyState>
  );
}

const PERIODS = [
  ['', 'Any time'],
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
] as const;
const OUTCOMES = [
  ['', 'Any outcome'],
  ['dead', 'With dead letters'],
  ['waiting', 'With waiting deliveries'],
] as const;

function EventFilters({ isFiltered }: { isFiltered: boolean }) {
  return (
    <div className="filters">
      <IdSearch />
      <FilterInput name="type" label="Type" placeholder="Type, e.g. order.created" />
      <FilterInput name="idempotency_key" label="Idempotency key" placeholder="Idempotency key" />
      <FilterSelect name="hours" label="Time" options={PERIODS} />
      <FilterSelect name="has" label="Deliveries" options={OUTCOMES} />
      {isFiltered && (
        <Button kind="quiet" onClick={() => navigate('/events')}>
          Clear
        </Button>
      )}
    </div>
  );
}

interface FilterSelectProps {
  name: string;
  label: string;
  options: readonly (readonly [string, string])[];
}

/** A choice that is kept in the URL's query. */
function FilterSelect({ name, label, options }: FilterSelectProps) {
  const value = useLocation().query.get(name) ?? '';
  return (
    <select
      className="input"
      aria-label={label}
      value={value}
      onChange={(event) => setQuery({ [name]: event.target.value })}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

const TENANT_COLUMN: Column<EventSummary> = {
  name: 'Tenant',
  width: 120,
  hideOnPhone: true,
  render: ({ tenant }) => <span className="soft">{tenant}</span>,
};

const buildColumns = (hasTenantColumn: boolean): Column<EventSummary>[] => [
  { name: 'Type', isLink: true, render: ({ type }) => <span className="mono">{type}</span> },
  {
    name: 'Id',
    width: '30%',
    hideOnPhone: true,
    render: ({ id }) => <span className="mono faint">{id}</span>,
  },
  ...(hasTenantColumn ? [TENANT_COLUMN] : []),
  {
    name: 'Idempotency key',
    width: '16%',
    hideOnPhone: true,
    render: ({ idempotency_key }) => <span className="mono faint">{idempotency_key}</span>,
  },
  {
    name: 'Deliveries',
    width: 88,
    isNumeric: true,
    render: ({ deliveries }) =>
      deliveries === 0 ? <span className="faint">none</span> : formatCount(deliveries),
  },
  { name: 'Accepted', width: 104, isNumeric: true, render: ({ created_at }) => <Ago at={created_at} /> },
];

/** Opens the page of an id. */
function IdSearch() {
  const [text, setText] = useState('');
  const [isInvalid, setInvalid] = useState(false);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const link = findIdLink(text);
    setInvalid(link === null);
    if (link !== null) navigate(link.to);
  };
  return (
    <form onSubmit={submit} className="row grow" style={{ flex: '2 1 240px' }}>
      <input
        className="input long mono"
        type="search"
        placeholder="Id: evt_…, dlv_…"
        aria-label="Find by id"
        aria-invalid={isInvalid}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setInvalid(false);
        }}
      />
    </form>
  );
}
