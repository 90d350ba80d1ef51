import type { Endpoint, Page, Stats } from '@posthorn/client';
import { useMemo } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { usePermissions, useSession } from '../api/session.ts';
import { Link } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { LinkButton } from '../ui/button.tsx';
import { Card } from '../ui/card.tsx';
import { EmptyState } from '../ui/empty-state.tsx';
import { formatCount, formatRate } from '../ui/format.ts';
import { ErrorNotice } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Table } from '../ui/table.tsx';
import { useLastValue } from '../ui/use-last-value.ts';
import { FailingEndpoints } from './failing-endpoints.tsx';
import { OverviewTiles } from './overview-tiles.tsx';
import { FailureChart, LatencyChart, SuccessChart, ThroughputChart } from './stats-charts.tsx';
import { PeriodControl, usePeriod } from './stats-period.tsx';

export function OverviewPage() {
  usePageTitle('Overview');
  const { selectedTenant } = useSession();
  const period = usePeriod();
  const { data, error, refresh } = useQuery<Stats>(
    withQuery('/v1/stats', { ...period.query, tenant: selectedTenant }),
    { pollMs: period.name === '1h' ? 3_000 : 15_000 },
  );
  const stats = useLastValue(data, selectedTenant ?? '');
  const endpoints = useQuery<Page<Endpoint>>(
    withQuery('/v1/endpoints', { limit: 1, tenant: selectedTenant }),
  );
  if (endpoints.data?.data.length === 0) return <FirstRun />;
  return (
    <>
      <PageHeader title="Overview">
        <PeriodControl value={period} />
      </PageHeader>
      {error !== null && stats === undefined ? (
        <ErrorNotice error={error} onRetry={refresh} />
      ) : (
        <div className="grid">
          <OverviewTiles stats={stats} />
          <div className="grid two">
            <Card title="Deliveries per second">
              <ThroughputChart stats={stats} />
            </Card>
            <Card title="Response time">
              <LatencyChart stats={stats} />
            </Card>
            <Card title="Success rate">
              <SuccessChart stats={stats} />
            </Card>
            <Card title="Failed requests and dead letters">
              <FailureChart stats={stats} />
            </Card>
          </div>
          <div className="grid two">
            <FailingEndpoints stats={stats} />
            <BusiestTypes stats={stats} />
          </div>
        </div>
      )}
    </>
  );
}

function FirstRun() {
  const { canEditEndpoints, hasInbox } = usePermissions();
  return (
    <>
      <PageHeader title="Welcome to Posthorn" />
      <Card>
        <EmptyState
          icon="start"
          title="No endpoints yet"
          actions={
            canEditEndpoints && (
              <>
                {hasInbox && (
                  <LinkButton to="/start" kind="primary" icon="play">
                    Start the guided tour
                  </LinkButton>
                )}
                <LinkButton to="/endpoints/new" kind={hasInbox ? '' : 'primary'} icon="plus">
                  Add an endpoint
                </LinkButton>
              </>
            )
          }
        >
          {hasInbox
            ? 'In two minutes you see a delivery, retries, an open circuit, a dead letter and a replay. You need no receiver.'
            : 'An endpoint is a URL that receives the events it subscribes to.'}
        </EmptyState>
      </Card>
    </>
  );
}

const MAX_ROWS = 10;

function BusiestTypes({ stats }: { stats: Stats | undefined }) {
  const rows = useMemo(
    () => stats?.types.toSorted((a, b) => b.attempts - a.attempts).slice(0, MAX_ROWS),
    [stats],
  );
  return (
    <Card title="Event types" actions={<Link to="/event-types">Catalogue</Link>}>
      <Table
        label="Event types"
        rows={rows}
        skeletonRows={4}
        getKey={(row) => row.type}
        getLink={(row) => `/events?type=${encodeURIComponent(row.type)}`}
        empty={
          <EmptyState icon="types" title="No deliveries in this period">
            Event types appear here when their events are delivered.
          </EmptyState>
        }
        columns={[
          { name: 'Type', isLink: true, render: (row) => <span className="mono">{row.type}</span> },
          { name: 'Requests', width: 84, isNumeric: true, render: (row) => formatCount(row.attempts) },
          { name: 'Success', width: 80, isNumeric: true, render: (row) => formatRate(row.success_rate) },
          {
            name: 'Dead',
            width: 70,
            isNumeric: true,
            hideOnPhone: true,
            render: (row) => (row.dead > 0 ? <Badge tone="bad">{formatCount(row.dead)}</Badge> : '0'),
          },
        ]}
      />
    </Card>
  );
}
