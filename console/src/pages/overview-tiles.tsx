import type { Ready, Stats } from '@posthorn/client';
import type { ReactNode } from 'react';
import { useQuery } from '../api/query.ts';
import { usePermissions } from '../api/session.ts';
import { Link } from '../router.tsx';
import {
  formatCount,
  formatMs,
  formatPerSecond,
  formatRate,
  formatSeconds,
  formatUpTo,
  plural,
  STATS_COUNT_LIMIT,
} from '../ui/format.ts';
import { Skeleton } from '../ui/skeleton.tsx';
import { computeCurrentRate } from './stats-charts.tsx';
import { describePeriod } from './stats-period.tsx';

interface TileProps {
  label: string;
  /** Undefined: loading. */
  value: string | undefined;
  unit?: string;
  note?: ReactNode;
  to: string;
  tone?: string;
}

function Tile({ label, value, unit, note, to, tone = '' }: TileProps) {
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

/** The figures that warn of an outage come first. */
export function OverviewTiles({ stats }: { stats: Stats | undefined }) {
  const now = stats?.now;
  return (
    <div className="grid tiles">
      <Tile
        label="Queue depth"
        value={now && formatUpTo(now.waiting, STATS_COUNT_LIMIT)}
        note={now && describeQueue(now)}
        to="/events?has=waiting"
        tone={now !== undefined && isQueueStuck(now) ? 'warn' : ''}
      />
      <Tile
        label="Dead letters"
        value={now && formatUpTo(now.dead, STATS_COUNT_LIMIT)}
        note={stats && `${formatRate(stats.dead_letter_rate)} of deliveries`}
        to="/dead-letters"
        tone={(now?.dead ?? 0) > 0 ? 'bad' : ''}
      />
      <Tile
        label="Throughput"
        value={stats && formatPerSecond(computeCurrentRate(stats))}
        unit="/ s"
        note={stats && `${formatCount(stats.delivered)} in ${describePeriod(stats)}`}
        to="/live"
      />
      <SuccessTile stats={stats} />
      <Tile
        label="Response time, p95"
        value={stats && formatMs(stats.response_ms.p95)}
        note={stats && `p50 ${formatMs(stats.response_ms.p50)} · p99 ${formatMs(stats.response_ms.p99)}`}
        to="/endpoints"
      />
      <Tile
        label="Open circuits"
        value={now && formatCount(now.circuits_open)}
        note={now && describeEndpoints(now)}
        to="/endpoints"
        tone={(now?.circuits_open ?? 0) > 0 ? 'bad' : ''}
      />
      <PublishingLagTile />
    </div>
  );
}

function SuccessTile({ stats }: { stats: Stats | undefined }) {
  if (stats === undefined) return <Tile label="Success rate" value={undefined} to="/events" />;
  const { now, success_rate: rate, first_attempt_success_rate: first } = stats;
  // The rate counts them as failing, except in a period of the past.
  const retrying = stats.window === null ? 0 : now.retrying;
  return (
    <Tile
      label="Success rate"
      value={formatRate(rate)}
      note={retrying > 0 ? `${formatCount(retrying)} failing now` : `${formatRate(first)} first attempt`}
      to={retrying > 0 ? '/events?has=retrying' : '/events'}
      tone={rate === null ? '' : rate < 0.5 ? 'bad' : rate < 0.95 ? 'warn' : ''}
    />
  );
}

const isQueueStuck = ({
  waiting_for_circuit: blocked,
  oldest_waiting_seconds: oldest,
}: Stats['now']): boolean => blocked > 0 || (oldest ?? 0) > 3600;

/** Deliveries behind an open circuit come first: most of them were never tried, so no rate counts them. */
function describeQueue(now: Stats['now']): string {
  const { waiting, waiting_for_circuit: blocked, retrying, oldest_waiting_seconds: oldest } = now;
  if (waiting === 0) return 'queue is empty';
  const atLeast = waiting < STATS_COUNT_LIMIT ? '' : 'at least ';
  return [
    blocked > 0
      ? `${formatUpTo(blocked, STATS_COUNT_LIMIT)} wait for an open circuit`
      : `${atLeast}${formatCount(retrying)} retrying`,
    oldest !== null && `oldest ${formatSeconds(oldest)}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

function describeEndpoints({ endpoints, endpoints_paused, endpoints_disabled }: Stats['now']): string {
  return [
    `of ${plural(endpoints, 'endpoint')}`,
    endpoints_paused > 0 && `${endpoints_paused} paused`,
    endpoints_disabled > 0 && `${endpoints_disabled} disabled`,
  ]
    .filter(Boolean)
    .join(' · ');
}

const MAX_HEALTHY_LAG_SECONDS = 30;

/** How far outbox and relays are behind. Shown only if one is in use, and to keys that can see all tenants. */
function PublishingLagTile() {
  const { canSeeAllTenants } = usePermissions();
  const ready = useQuery<Ready>(canSeeAllTenants ? '/readyz' : null, { pollMs: 5_000 });
  const { outbox = null, relays = null } = ready.data ?? {};
  const rejected = outbox?.rejected ?? 0;
  const sources = relays?.sources ?? 0;
  const failing = relays?.troubled ?? 0;
  const lagSeconds = Math.max(outbox?.oldest_age_seconds ?? 0, relays?.oldest_age_seconds ?? 0);
  if (sources === 0 && rejected === 0 && lagSeconds < 1) return null;
  const note = [
    sources > 0 && plural(sources, 'relay source'),
    failing > 0 && `${failing} failing`,
    rejected > 0 && `${formatCount(rejected)} rejected`,
  ]
    .filter(Boolean)
    .join(' · ');
  return (
    <Tile
      label="Publishing lag"
      value={formatSeconds(lagSeconds)}
      note={note}
      to="/events"
      tone={lagSeconds > MAX_HEALTHY_LAG_SECONDS || failing > 0 || rejected > 0 ? 'bad' : ''}
    />
  );
}
