import type { Endpoint, EndpointStats } from '@posthorn/client';
import { useState } from 'react';
import { withQuery } from '../api/client.ts';
import { usePagedList } from '../api/paged-list.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Badge } from '../ui/badge.tsx';
import { LinkButton } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { Sparkline } from '../ui/chart.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { describeEndpointState } from '../ui/endpoint-state.tsx';
import { formatCount, formatMs, formatRate, formatUpTo } from '../ui/format.ts';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { type Column, PagedTable, TALL_ROW } from '../ui/table.tsx';
import { TwoLineCell } from '../ui/two-line-cell.tsx';

export function EndpointsPage() {
  usePageTitle('Endpoints');
  const { canWrite, canSeeAllTenants } = usePermissions();
  const { selectedTenant } = useSession();
  const [text, setText] = useState('');
  const list = usePagedList<Endpoint>(
    withQuery('/v1/endpoints', { tenant: selectedTenant }),
    ({ id }) => id,
    {
      pollMs: 5_000,
    },
  );
  const needle = text.trim().toLowerCase();
  const isMatch = ({ url, description, id, tenant, events }: Endpoint): boolean =>
    [url, description, id, tenant, ...events].some((each) => each.toLowerCase().includes(needle));
  const filteredList = needle === '' ? list : { ...list, rows: list.rows?.filter(isMatch) };
  return (
    <>
      <PageHeader title="Endpoints">
        {canWrite && (
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
        </div>
        <PagedTable
          label="Endpoints"
          list={filteredList}
          getKey={({ id }) => id}
          getLink={({ id }) => `/endpoints/${id}`}
          rowHeight={TALL_ROW}
          empty={
            needle === '' ? (
              <NoEndpoints />
            ) : (
              <EmptyState icon="search" title={`No endpoint matches “${text}”`} />
            )
          }
          columns={buildColumns(canSeeAllTenants && selectedTenant === null)}
        />
      </Card>
    </>
  );
}

function NoEndpoints() {
  const { canWrite, hasInbox } = usePermissions();
  return (
    <EmptyState
      icon="endpoint"
      title="No endpoints yet"
      actions={
        canWrite && (
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

const buildColumns = (hasTenantColumn: boolean): Column<Endpoint>[] => [
  {
    name: 'Endpoint',
    isLink: true,
    render: (endpoint) => {
      const { name, detail } = nameEndpoint(endpoint);
      return <TwoLineCell first={name} second={detail ?? endpoint.events.join(', ')} />;
    },
  },
  ...(hasTenantColumn ? [TENANT_COLUMN] : []),
  {
    name: 'State',
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
    name: 'Success',
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatRate(health.success_rate),
  },
  {
    name: 'p95',
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatMs(health.p95_ms),
  },
  {
    name: 'Waiting',
    width: 80,
    isNumeric: true,
    hideOnPhone: true,
    render: ({ health }) => formatUpTo(health.waiting, health.count_limit),
  },
  {
    name: 'Dead',
    width: 72,
    isNumeric: true,
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
