import type { Event as EventSummary } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { navigate, setQuery, useLocation } from '../router.tsx';
import { Button } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { OutcomeSummary } from '../ui/outcome.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { useQueryRange } from '../ui/query-range.ts';
import { type Column, PagedTable } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';
import { EVENT_FILTERS, EventFilters } from './event-filters.tsx';
import { SearchProgress } from './payload-search.tsx';
import { PublishDialog } from './publish-dialog.tsx';

export function EventsPage() {
  usePageTitle('Events');
  const { canPublish, canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const { query } = useLocation();
  const [isPublishing, setPublishing] = useState(query.get('publish') === '1');
  const { range } = useQueryRange();
  const where = query.get('where');
  const path = withQuery('/v1/events', {
    type: query.get('type'),
    has: query.get('has'),
    idempotency_key: query.get('idempotency_key'),
    where,
    ...range,
    tenant: selectedTenant,
  });
  // A search examines many events: it is not repeated every few seconds.
  const list = usePagedList<EventSummary>(path, ({ id }) => id, { pollMs: where === null ? 3_000 : 0 });
  const isSearching = where !== null && list.rows?.length === 0 && list.hasMore;
  const isFiltered = EVENT_FILTERS.some((name) => query.get(name));
  const publishButton = canPublish && (
    <Button kind="primary" icon="send" onClick={() => setPublishing(true)}>
      Publish event
    </Button>
  );
  return (
    <>
      <PageHeader title="Events">{publishButton}</PageHeader>
      <Card>
        <EventFilters isFiltered={isFiltered} path={path} />
        {where !== null && <SearchProgress list={list} where={where} />}
        <PagedTable
          label="Events"
          list={isSearching ? { ...list, hasMore: false } : list}
          getKey={({ id }) => id}
          getLink={({ id }) => `/events/${id}`}
          columns={buildColumns(canSeeAllTenants && selectedTenant === null)}
          empty={
            isSearching ? null : isFiltered ? (
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

function NoMatch() {
  return (
    <EmptyState
      icon="search"
      title="No event matches"
      actions={<Button onClick={() => navigate('/events')}>Show all events</Button>}
    >
      Types and values must match exactly. By default, idempotency keys expire after 24 hours.
    </EmptyState>
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
    width: '20%',
    hideOnPhone: true,
    render: ({ id }) => <span className="mono faint">{id}</span>,
  },
  ...(hasTenantColumn ? [TENANT_COLUMN] : []),
  {
    name: 'Idempotency key',
    width: '14%',
    hideOnPhone: true,
    render: ({ idempotency_key }) => <span className="mono faint">{idempotency_key}</span>,
  },
  {
    name: 'Outcome',
    width: '30%',
    render: (event) => <OutcomeSummary event={event} />,
  },
  { name: 'Accepted', width: 104, isNumeric: true, render: ({ created_at }) => <Ago at={created_at} /> },
];
