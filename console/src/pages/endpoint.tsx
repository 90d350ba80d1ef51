import type { Endpoint, EndpointStats } from '@posthorn/client';
import type { ReactNode } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { Link, useLocation } from '../router.tsx';
import { Badge } from '../ui/badge.tsx';
import { Card } from '../ui/card.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { nameEndpoint } from '../ui/endpoint-name.ts';
import { CircuitBadge, describeEndpointState } from '../ui/endpoint-state.tsx';
import { formatCount, formatMs, formatRate, formatUpTo, plural } from '../ui/format.ts';
import { ErrorPage } from '../ui/notice.tsx';
import { PageHeader } from '../ui/page-header.tsx';
import { usePageTitle } from '../ui/page-title.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { Tabs } from '../ui/tabs.tsx';
import { Ago, Countdown } from '../ui/time.tsx';
import { useLastValue } from '../ui/use-last-value.ts';
import { DeliveryList, RecentDeliveryTable } from './delivery-list.tsx';
import { EndpointActions } from './endpoint-actions.tsx';
import { FilterEditor } from './endpoint-filter.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { SecretCard } from './endpoint-secret.tsx';
import { FailureChart, LatencyChart, SuccessChart, ThroughputChart } from './stats-charts.tsx';
import { PeriodControl, usePeriod } from './stats-period.tsx';

const TABS = [
  ['overview', 'Overview'],
  ['deliveries', 'Deliveries'],
  ['filter', 'Filter'],
  ['configuration', 'Configuration'],
] as const;

export function EndpointPage({ id }: { id: string }) {
  const { query } = useLocation();
  const { data, error, refresh } = useQuery<Endpoint>(`/v1/endpoints/${id}`, { pollMs: 3_000 });
  usePageTitle(data === undefined ? 'Endpoint' : nameEndpoint(data).name);
  const tab = TABS.find(([name]) => name === query.get('tab'))?.[0] ?? 'overview';
  if (data === undefined && error !== null)
    return <ErrorPage title="Endpoint" error={error} onRetry={refresh} />;
  return (
    <>
      <PageHeader
        crumb={<Link to="/endpoints">Endpoints</Link>}
        title={
          data === undefined ? (
            <Skeleton width={320} label="Endpoint" />
          ) : (
            <span className="break-anywhere">{nameEndpoint(data).name}</span>
          )
        }
        below={<EndpointFacts id={id} endpoint={data} />}
      >
        {data !== undefined && <EndpointActions endpoint={data} />}
      </PageHeader>
      <Tabs
        tabs={TABS}
        current={tab}
        getLink={(name) => `/endpoints/${id}${name === 'overview' ? '' : `?tab=${name}`}`}
      />
      {tab === 'overview' && <OverviewTab id={id} endpoint={data} />}
      {tab === 'deliveries' && (
        <Card>
          <DeliveryList path={`/v1/endpoints/${id}/deliveries`} />
        </Card>
      )}
      {tab === 'filter' && data !== undefined && <FilterEditor endpoint={data} />}
      {tab === 'configuration' && data !== undefined && (
        <div className="grid">
          <SecretCard endpoint={data} onChanged={refresh} />
          <EndpointForm key={data.id} endpoint={data} />
        </div>
      )}
    </>
  );
}

function EndpointFacts({ id, endpoint }: { id: string; endpoint: Endpoint | undefined }) {
  if (endpoint === undefined)
    return (
      <div className="row small faint" style={{ minHeight: 24 }}>
        <CopyButton text={id} />
      </div>
    );
  const { name, tone, explanation } = describeEndpointState(endpoint);
  const { detail } = nameEndpoint(endpoint);
  return (
    <div className="row wrap small faint" style={{ minHeight: 24 }}>
      <Badge tone={tone}>{name}</Badge>
      {explanation !== '' && <span>{explanation}</span>}
      {detail !== null && <span className="break-anywhere">{detail}</span>}
      <CopyButton text={id} />
      <span>{endpoint.tenant}</span>
    </div>
  );
}

function OverviewTab({ id, endpoint }: { id: string; endpoint: Endpoint | undefined }) {
  const period = usePeriod();
  const { data } = useQuery<EndpointStats>(withQuery(`/v1/endpoints/${id}/stats`, { ...period.query }), {
    pollMs: 5_000,
  });
  const stats = useLastValue(data, id);
  return (
    <div className="grid">
      <div className="grid aside">
        <Card title="Requests" actions={<PeriodControl value={period} />}>
          <div className="grid two">
            <ThroughputChart stats={stats} />
            <LatencyChart stats={stats} />
            <SuccessChart stats={stats} />
            <FailureChart stats={stats} />
          </div>
        </Card>
        <div className="grid">
          <HealthCard endpoint={endpoint} />
        </div>
      </div>
      <Card
        title="Recent deliveries"
        actions={<Link to={`/endpoints/${id}?tab=deliveries`}>All deliveries</Link>}
      >
        <RecentDeliveryTable path={`/v1/endpoints/${id}/deliveries`} />
      </Card>
    </div>
  );
}

/** What adaptive limits do to the endpoint at the moment, and why. */
function AdaptiveNote({ health }: { health: Endpoint['health'] }) {
  const { adaptive, in_flight_limit, effective_timeout_ms } = health;
  if (adaptive === null) return null;
  return (
    <span className="warn">
      {adaptive.reason === 'slow' ? 'It is slow' : 'It is slow and times out'}:{' '}
      {plural(in_flight_limit, 'request')} at a time, deadline {formatMs(effective_timeout_ms)}, since{' '}
      <Ago at={adaptive.since} />
    </span>
  );
}

/** The unit stays on the line of its number. */
const formatUnbroken = (ms: number | null): string => formatMs(ms).replace(' ', '\u00a0');

function HealthCard({ endpoint }: { endpoint: Endpoint | undefined }) {
  const health = endpoint?.health;
  const fact = (name: string, value: ReactNode) => (
    <>
      <dt>{name}</dt>
      <dd>{health === undefined ? <Skeleton width={80} /> : value}</dd>
    </>
  );
  return (
    <Card title="Health">
      <dl className="facts card-body">
        {fact(
          'Circuit',
          health && (
            <CircuitBadge
              circuit={health.circuit}
              isIdle={!endpoint!.enabled || health.success_rate === null}
            />
          ),
        )}
        {health !== undefined &&
          health.circuit !== 'closed' &&
          fact('Next probe', health.next_probe_at ? <Countdown at={health.next_probe_at} /> : 'soon')}
        {fact('Consecutive failures', health && formatCount(health.consecutive_failures))}
        {fact('Success, 24 h', formatRate(health?.success_rate))}
        {fact(
          'p50 · p95 · p99',
          health && [health.p50_ms, health.p95_ms, health.p99_ms].map(formatUnbroken).join(' · '),
        )}
        {health?.adaptive != null && fact('Limited now', <AdaptiveNote health={health} />)}
        {fact('Waiting', health && formatUpTo(health.waiting, health.count_limit))}
        {fact('Oldest waiting', <Ago at={health?.oldest_waiting_at} />)}
        {fact(
          'Dead letters',
          health &&
            (health.dead === 0 ? (
              '0'
            ) : (
              <Link to={`/dead-letters?endpoint_id=${endpoint!.id}`}>
                {formatUpTo(health.dead, health.count_limit)}
              </Link>
            )),
        )}
        {health !== undefined &&
          health.skipped_while_disabled > 0 &&
          fact(
            endpoint!.enabled ? 'Skipped while last disabled' : 'Skipped while disabled',
            formatCount(health.skipped_while_disabled),
          )}
        {fact('Subscribes to', endpoint && <span className="mono">{endpoint.events.join(', ')}</span>)}
        {endpoint?.region != null && fact('Region', endpoint.region)}
        {fact('Created', <Ago at={endpoint?.created_at} />)}
      </dl>
    </Card>
  );
}
