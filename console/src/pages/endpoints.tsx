import type { Endpoint, EndpointStats } from '@posthorn/client';
import { useEffect, useMemo, useState } from 'react';
import { withQuery } from '../api/client.ts';
import { type PagedList, usePagedList } from '../api/paged-list.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Link, useLocation } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { LinkButton } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { Sparkline } from '../ui/chart.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { ENDPOINT_STATES, readSort, type SortKey, sortEndpoints } from '../ui/endpoint-order.ts';
import { describeEndpointState } from '../ui/endpoint-state.tsx';
import { ExportButton } from '../ui/export-button.tsx';
import { FilterSelect } from '../ui/filter-select.tsx';
import { formatCount, formatMs, formatRate, formatUpTo } from '../ui/format.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { SortHead, toAriaSort } from '../ui/sort-head.tsx';
import { type Column, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

/** Filters and sorting look at this many endpoints, the newest ones. */
const MAX_LOADED = 2_000;

export function EndpointsPage() {
  usePageTitle('Endpoints');
  const { canEditEndpoints, canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const { query } = useLocation();
  const [text, setText] = useState('');
  const eventType = query.get('event_type');
  const path = withQuery('/v1/endpoints', { tenant: selectedTenant, event_type: eventType });
  const list = usePagedList<Endpoint>(path, ({ id }) => id, { pollMs: 5_000 });
  const needle = text.trim().toLowerCase();
  const state = query.get('state') ?? '';
  const sort = query.get('sort') ?? '';
  const isArranged = needle !== '' || state !== '' || sort !== '';
  const rows = useMemo(() => arrange(list.rows, { needle, state, sort }), [list.rows, needle, state, sort]);
  useLoadAll(list, isArranged);
  return (
    <>
      <PageHeader
        title="Endpoints"
        below={
          eventType !== null && (
            <p className="soft row wrap">
              <span>
                Only endpoints that subscribe to <span className="mono">{eventType}</span>.
              </span>
              <Link to="/endpoints">Show all</Link>
            </p>
          )
        }
      >
        {canEditEndpoints && (
          <LinkButton to="/endpoints/new" kind="primary" icon="plus">
            Add endpoint
          </LinkButton>
        )}
      </PageHeader>
      <Card>
        <div className="filters">
          <input
            className="input long"
            type="search"
            placeholder="Filter by description, URL, id, tenant or event type"
            aria-label="Filter endpoints"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <FilterSelect name="state" label="State" options={ENDPOINT_STATES} />
          <ExportButton path={path} name="endpoints" />
          {isArranged && list.hasMore && (
            <span className="small soft">
              {`Among the newest ${formatCount(list.rows?.length ?? 0)} endpoints`}
            </span>
          )}
        </div>
        <PagedTable
          label="Endpoints"
          list={{ ...list, rows }}
          getKey={({ id }) => id}
          getLink={({ id }) => `/endpoints/${id}`}
          rowHeight={TALL_ROW}
          empty={
            needle === '' && state === '' && eventType === null ? (
              <NoEndpoints />
            ) : (
              <EmptyState icon="search" title="No endpoint matches the filter" />
            )
          }
          columns={buildColumns(canSeeAllTenants && selectedTenant === null, sort)}
        />
      </Card>
    </>
  );
}

interface Arrangement {
  readonly needle: string;
  readonly state: string;
  readonly sort: string;
}

/** The endpoints that match, in the chosen order. */
function arrange(
  endpoints: readonly Endpoint[] | undefined,
  { needle, state, sort }: Arrangement,
): readonly Endpoint[] | undefined {
  const described = endpoints?.map((endpoint) => ({
    endpoint,
    name: nameEndpoint(endpoint).name,
    state: describeEndpointState(endpoint).name,
  }));
  const isMatch = ({ url, description, id, tenant, events }: Endpoint): boolean =>
    [url, description, id, tenant, ...events].some((each) => each.toLowerCase().includes(needle));
  const matching = described?.filter(
    (row) => (needle === '' || isMatch(row.endpoint)) && (state === '' || row.state === state),
  );
  return matching && sortEndpoints(matching, readSort(sort)).map(({ endpoint }) => endpoint);
}

/** Loads further pages while they are needed. */
function useLoadAll(
  { rows, hasMore, isLoadingMore, loadMore, error }: PagedList<Endpoint>,
  isNeeded: boolean,
): void {
  const count = rows?.length ?? 0;
  useEffect(() => {
    if (isNeeded && hasMore && !isLoadingMore && error === null && count < MAX_LOADED) loadMore();
  }, [isNeeded, hasMore, isLoadingMore, error, count, loadMore]);
}

function NoEndpoints() {
  const { canEditEndpoints, hasInbox } = usePermissions();
  return (
    <EmptyState
      icon="endpoint"
      title="No endpoints yet"
      actions={
        canEditEndpoints && (
          <>
            <LinkButton to="/endpoints/new" kind="primary" icon="plus">
              Add endpoint
            </LinkButton>
            {hasInbox && <LinkButton to="/start">Try it without a receiver</LinkButton>}
          </>
        )
      }
    >
      An endpoint is a URL that receives the events it subscribes to.
    </EmptyState>
  );
}

const TENANT_COLUMN: Column<Endpoint> = {
  name: 'Tenant',
  width: 120,
  hideOnPhone: true,
  render: ({ tenant }) => <span className="soft">{tenant}</span>,
};

const sortable = (name: string, sortKey: SortKey, current: string) => ({
  name,
  head: <SortHead name={name} sortKey={sortKey} current={current} />,
  ariaSort: toAriaSort(sortKey, current),
});

const buildColumns = (hasTenantColumn: boolean, sort: string): Column<Endpoint>[] => [
  {
    ...sortable('Endpoint', 'name', sort),
    isLink: true,
    render: (endpoint) => {
      const { name, detail } = nameEndpoint(endpoint);
      return <TwoLineCell first={name} second={detail ?? endpoint.id} />;
    },
  },
  ...(hasTenantColumn ? [TENANT_COLUMN] : []),
  {
    ...sortable('State', 'state', sort),
    width: 130,
    render: (endpoint) => {
      const { name, tone, explanation } = describeEndpointState(endpoint);
      return (
        <span title={explanation}>
          <Badge tone={tone}>{name}</Badge>
        </span>
      );
    },
  },
  { name: 'Last 24 h', width: 120, hideOnPhone: true, render: ({ id }) => <RequestSparkline id={id} /> },
  {
    ...sortable('Success', 'success', sort),
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatRate(health.success_rate),
  },
  {
    ...sortable('p95', 'p95', sort),
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatMs(health.p95_ms),
  },
  {
    ...sortable('Waiting', 'waiting', sort),
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatUpTo(health.waiting, health.count_limit),
  },
  {
    ...sortable('Dead', 'dead', sort),
    width: 72,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => (
      <span className={health.dead > 0 ? 'bad' : ''}>{formatUpTo(health.dead, health.count_limit)}</span>
    ),
  },
];

function RequestSparkline({ id }: { id: string }) {
  const { data } = useQuery<EndpointStats>(`/v1/endpoints/${id}/stats?window=24h`);
  if (data === undefined) return null;
  return (
    <Sparkline
      values={data.series.map(({ attempts }) => attempts)}
      label={`${formatCount(data.attempts)} requests in 24 hours`}
    />
  );
}
