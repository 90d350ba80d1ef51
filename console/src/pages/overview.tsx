import { type ReactNode, useMemo } from 'react';
import { withQuery } from '../api/client.ts';
import { useQuery } from '../api/query.ts';
import { useMay, useSession } from '../api/session.ts';
import type { Endpoint, OverviewStats, Page, Readiness } from '../api/types.ts';
import { Link, setQuery, usePlace } from '../router.tsx';
import {
  Badge,
  Card,
  Empty,
  Failure,
  LinkButton,
  Notice,
  PageHead,
  Segments,
  Skeleton,
} from '../ui/basics.tsx';
import { plural, shortUrl, showCount, showMs, showPerSecond, showRate, showSeconds } from '../ui/format.ts';
import { Table } from '../ui/table.tsx';
import { usePageTitle } from '../ui/title.ts';
import { useKept } from '../ui/use-kept.ts';
import { CircuitBadge } from '../ui/words.tsx';
import { FailureChart, LatencyChart, latestRate, SuccessChart, ThroughputChart } from './charts.tsx';

export const WINDOWS = [
  ['1h', '1 hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
] as const;
export type Window = (typeof WINDOWS)[number][0];

export function useWindow(fallback: Window): Window {
  const given = usePlace().query.get('window');
  return WINDOWS.find(([name]) => name === given)?.[0] ?? fallback;
}

export function WindowChoice({ value }: { value: Window }) {
  return (
    <Segments label="Period" value={value} options={WINDOWS} onChange={(window) => setQuery({ window })} />
  );
}

export function OverviewPage() {
  usePageTitle('Overview');
  const { shownTenant } = useSession();
  const window = useWindow('1h');
  const stats = useQuery<OverviewStats>(withQuery('/v1/stats', { window, tenant: shownTenant }), {
    pollMs: window === '1h' ? 3_000 : 15_000,
  });
  const shown = useKept(stats.data, shownTenant ?? '');
  const first = useQuery<Page<Endpoint>>(withQuery('/v1/endpoints', { limit: 1, tenant: shownTenant }));
  if (first.data?.data.length === 0) return <FirstRun />;
  return (
    <>
      <PageHead title="Overview">
        <WindowChoice value={window} />
      </PageHead>
      {stats.error !== null && shown === undefined ? (
        <Unavailable stats={stats} />
      ) : (
        <div className="grid">
          <Tiles stats={shown} />
          <div className="grid two">
            <Card title="Deliveries per second">
              <ThroughputChart stats={shown} />
            </Card>
            <Card title="Response time">
              <LatencyChart stats={shown} />
            </Card>
            <Card title="Success rate">
              <SuccessChart stats={shown} />
            </Card>
            <Card title="Failed requests and dead letters">
              <FailureChart stats={shown} />
            </Card>
          </div>
          <div className="grid two">
            <FailingEndpoints stats={shown} />
            <Types stats={shown} />
          </div>
        </div>
      )}
    </>
  );
}

function Unavailable({ stats }: { stats: ReturnType<typeof useQuery<OverviewStats>> }) {
  if (stats.error!.status !== 404) return <Failure error={stats.error!} retry={stats.refresh} />;
  return (
    <Notice title="No figures here">
      This server does not offer <code>/v1/stats</code>. <Link to="/endpoints">Endpoints</Link> and{' '}
      <Link to="/events">events</Link> are there all the same.
    </Notice>
  );
}

function FirstRun() {
  const may = useMay();
  return (
    <>
      <PageHead title="Welcome to Posthorn" />
      <Card>
        <Empty
          icon="start"
          title="No endpoint yet"
          actions={
            may.write && (
              <>
                {may.inbox && (
                  <LinkButton to="/start" kind="primary" icon="play">
                    Start the guided tour
                  </LinkButton>
                )}
                <LinkButton to="/endpoints/new" kind={may.inbox ? '' : 'primary'} icon="plus">
                  Add an endpoint
                </LinkButton>
              </>
            )
          }
        >
          {may.inbox
            ? 'See a webhook arrive, fail, retry, die and come back in two minutes, without writing a receiver.'
            : 'An endpoint is an address that gets the events it subscribes to.'}
        </Empty>
      </Card>
    </>
  );
}

const WINDOW_WORDS: Record<string, string> = { '1h': '1 hour', '24h': '24 hours', '7d': '7 days' };

function Tile({
  label,
  value,
  unit,
  note,
  to,
  tone = '',
}: {
  label: string;
  value: string | undefined;
  unit?: string;
  note?: ReactNode;
  to: string;
  tone?: string;
}) {
  return (
    <Link to={to} className="tile">
      <div className="tile-label">{label}</div>
      <div className={`tile-value ${tone}`}>
        {value ?? <Skeleton width={64} />}
        {value !== undefined && unit !== undefined && <small>{unit}</small>}
      </div>
      <div className="tile-note">{note}</div>
    </Link>
  );
}

/** How far behind those are who publish from a database. Only where somebody does, and for those who may see all of it. */
function SourceTile() {
  const { allTenants } = useMay();
  const ready = useQuery<Readiness>(allTenants ? '/readyz' : null, { pollMs: 5_000 });
  const { outbox = null, relays = null } = ready.data ?? {};
  const rejected = outbox?.rejected ?? 0;
  const sources = relays?.sources ?? 0;
  const behind = Math.max(outbox?.oldest_age_seconds ?? 0, relays?.oldest_age_seconds ?? 0);
  if (sources === 0 && rejected === 0 && behind < 1) return null;
  const troubled = relays?.troubled ?? 0;
  return (
    <Tile
      label="Publishing lag"
      value={showSeconds(behind)}
      note={[
        sources > 0 && plural(sources, 'relay source'),
        troubled > 0 && `${troubled} in trouble`,
        rejected > 0 && `${showCount(rejected)} rejected`,
      ]
        .filter(Boolean)
        .join(' · ')}
      to="/events"
      tone={behind > 30 || troubled > 0 || rejected > 0 ? 'bad' : ''}
    />
  );
}

/** What warns before an outage comes first. */
function Tiles({ stats }: { stats: OverviewStats | undefined }) {
  const now = stats?.now;
  const oldest = now?.oldest_waiting_seconds ?? null;
  return (
    <div className="grid tiles">
      <Tile
        label="Queue depth"
        value={now && showCount(now.waiting)}
        note={
          now &&
          (now.waiting === 0
            ? 'nothing waits'
            : `${showCount(now.retrying)} retrying${oldest === null ? '' : ` · oldest ${showSeconds(oldest)}`}`)
        }
        to="/events?has=waiting"
        tone={oldest !== null && oldest > 3600 ? 'warn' : ''}
      />
      <Tile
        label="Dead letters"
        value={now && showCount(now.dead)}
        note={stats && `${showRate(stats.dead_letter_rate)} of what ended`}
        to="/dead-letters"
        tone={(now?.dead ?? 0) > 0 ? 'bad' : ''}
      />
      <Tile
        label="Throughput"
        value={stats && showPerSecond(latestRate(stats))}
        unit="/ s"
        note={stats && `${showCount(stats.delivered)} in ${WINDOW_WORDS[stats.window]}`}
        to="/live"
      />
      <Tile
        label="Success rate"
        value={stats && showRate(stats.success_rate)}
        note={stats && `${showRate(stats.first_attempt_success_rate)} at the first try`}
        to="/events"
        tone={(stats?.success_rate ?? 1) < 0.95 ? 'warn' : ''}
      />
      <Tile
        label="Response time, p95"
        value={stats && showMs(stats.response_ms?.p95)}
        note={stats && `p50 ${showMs(stats.response_ms?.p50)} · p99 ${showMs(stats.response_ms?.p99)}`}
        to="/endpoints"
      />
      <Tile
        label="Open circuits"
        value={now && showCount(now.circuits_open)}
        note={
          now &&
          `of ${plural(now.endpoints, 'endpoint')}${now.endpoints_paused > 0 ? ` · ${now.endpoints_paused} paused` : ''}${now.endpoints_disabled > 0 ? ` · ${now.endpoints_disabled} disabled` : ''}`
        }
        to="/endpoints"
        tone={(now?.circuits_open ?? 0) > 0 ? 'bad' : ''}
      />
      <SourceTile />
    </div>
  );
}

function FailingEndpoints({ stats }: { stats: OverviewStats | undefined }) {
  const rows = useMemo(
    () =>
      stats?.endpoints
        ?.filter(({ failures, dead, circuit }) => failures > 0 || dead > 0 || circuit !== 'closed')
        .toSorted(
          (a, b) =>
            Number(b.circuit !== 'closed') - Number(a.circuit !== 'closed') || b.failures - a.failures,
        )
        .slice(0, 10),
    [stats],
  );
  return (
    <Card title="Failing endpoints" actions={<Link to="/endpoints">All endpoints</Link>}>
      <Table
        label="Failing endpoints"
        rows={rows}
        skeletonRows={4}
        keyOf={(row) => row.endpoint_id}
        linkOf={(row) => `/endpoints/${row.endpoint_id}`}
        empty={
          <Empty icon="check" title="Every endpoint answers">
            No request failed in this period.
          </Empty>
        }
        columns={[
          { name: 'Endpoint', link: true, cell: (row) => shortUrl(row.url) },
          { name: 'Circuit', width: 90, cell: (row) => <CircuitBadge circuit={row.circuit} /> },
          { name: 'Failed', width: 74, num: true, cell: (row) => showCount(row.failures) },
          { name: 'Success', width: 80, num: true, cell: (row) => showRate(row.success_rate) },
          {
            name: 'Dead',
            width: 64,
            num: true,
            wideOnly: true,
            cell: (row) => <span className={row.dead > 0 ? 'bad' : ''}>{showCount(row.dead)}</span>,
          },
        ]}
      />
    </Card>
  );
}

function Types({ stats }: { stats: OverviewStats | undefined }) {
  const rows = useMemo(() => stats?.types?.toSorted((a, b) => b.attempts - a.attempts).slice(0, 10), [stats]);
  return (
    <Card title="Event types" actions={<Link to="/event-types">Catalogue</Link>}>
      <Table
        label="Event types"
        rows={rows}
        skeletonRows={4}
        keyOf={(row) => row.type}
        linkOf={(row) => `/events?type=${encodeURIComponent(row.type)}`}
        empty={
          <Empty icon="types" title="Nothing in this period">
            Events show up here as they are delivered.
          </Empty>
        }
        columns={[
          { name: 'Type', link: true, cell: (row) => <span className="mono">{row.type}</span> },
          { name: 'Requests', width: 84, num: true, cell: (row) => showCount(row.attempts) },
          { name: 'Success', width: 80, num: true, cell: (row) => showRate(row.success_rate) },
          {
            name: 'Dead',
            width: 70,
            num: true,
            wideOnly: true,
            cell: (row) => (row.dead > 0 ? <Badge tone="bad">{showCount(row.dead)}</Badge> : '0'),
          },
        ]}
      />
    </Card>
  );
}
