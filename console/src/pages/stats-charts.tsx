/** Statistics over time, of all endpoints or of one. */
import type { EndpointStats, Stats } from '@posthorn/client';
import { useMemo } from 'react';
import { Chart, type Series } from '../ui/chart.tsx';
import { formatCount, formatMs, formatPerSecond, formatRate } from '../ui/format.ts';

type AnyStats = Stats | EndpointStats;
type StatsPoint = AnyStats['series'][number];

interface ChartProps {
  stats: AnyStats | undefined;
}

const NO_POINTS: readonly StatsPoint[] = [];

/** How many seconds a point covers. The last one is shorter: its bucket is not over. */
function computeCoveredSeconds({ at }: StatsPoint, { bucket_seconds, to }: AnyStats): number {
  return Math.max(1, Math.min(bucket_seconds, (Date.parse(to) - Date.parse(at)) / 1000));
}

/** Deliveries per second now. The average of the last two points, because the last one may cover only a moment. */
export function computeCurrentRate(stats: AnyStats): number {
  const latest: readonly StatsPoint[] = stats.series.slice(-2);
  const seconds = latest.reduce((sum, point) => sum + computeCoveredSeconds(point, stats), 0);
  return latest.reduce((sum, { delivered }) => sum + delivered, 0) / Math.max(1, seconds);
}

function usePoints(stats: AnyStats | undefined): {
  points: readonly StatsPoint[];
  times: readonly string[];
} {
  return useMemo(() => {
    const points: readonly StatsPoint[] = stats?.series ?? NO_POINTS;
    return { points, times: points.map(({ at }) => at) };
  }, [stats]);
}

export function ThroughputChart({ stats }: ChartProps) {
  const { points, times } = usePoints(stats);
  const series = useMemo((): Series[] => {
    const perSecond = (select: (point: StatsPoint) => number | null) =>
      points.map((point) => (select(point) ?? 0) / computeCoveredSeconds(point, stats!));
    const delivered: Series = {
      name: 'Delivered',
      colour: 1,
      isFilled: true,
      values: perSecond((point) => point.delivered),
    };
    // The statistics of one endpoint do not count accepted events.
    if (points.every((point) => point.accepted === null)) return [delivered];
    return [delivered, { name: 'Accepted', colour: 2, values: perSecond((point) => point.accepted) }];
  }, [points, stats]);
  return (
    <Chart
      label="Deliveries per second over time"
      times={times}
      series={series}
      formatValue={(value) => formatPerSecond(value ?? 0)}
      formatTick={(perSecond) => String(Number(perSecond.toFixed(3)))}
    />
  );
}

export function LatencyChart({ stats }: ChartProps) {
  const { points, times } = usePoints(stats);
  const series = useMemo(
    (): Series[] => [
      { name: 'p50', colour: 2, values: points.map((point) => point.response_p50_ms) },
      { name: 'p95', colour: 1, values: points.map((point) => point.response_p95_ms) },
      { name: 'p99', colour: 3, values: points.map((point) => point.response_p99_ms) },
    ],
    [points],
  );
  return (
    <Chart
      label="Response time percentiles over time"
      times={times}
      series={series}
      formatValue={formatMs}
      formatTick={(ms) => (ms < 1000 ? `${Number(ms.toFixed(1))} ms` : `${Number((ms / 1000).toFixed(2))} s`)}
    />
  );
}

/** Counts requests, not deliveries: so the rate falls as soon as requests fail, long before a delivery is dead. */
export function SuccessChart({ stats }: ChartProps) {
  const { points, times } = usePoints(stats);
  const series = useMemo((): Series[] => {
    const values = points.map(({ attempts, successes }) => (attempts === 0 ? null : successes / attempts));
    return [{ name: 'Successful requests', colour: 2, isFilled: true, values }];
  }, [points]);
  return (
    <Chart
      label="Success rate over time"
      times={times}
      series={series}
      formatValue={formatRate}
      formatTick={(share) => `${Math.round(share * 100)}%`}
      scale="share"
    />
  );
}

export function FailureChart({ stats }: ChartProps) {
  const { points, times } = usePoints(stats);
  const series = useMemo(
    (): Series[] => [
      { name: 'Failed requests', colour: 3, isFilled: true, values: points.map((point) => point.failures) },
      { name: 'Dead letters', colour: 4, values: points.map((point) => point.dead) },
    ],
    [points],
  );
  return (
    <Chart
      label="Failures over time"
      times={times}
      series={series}
      formatValue={(value) => formatCount(Math.round(value ?? 0))}
      formatTick={formatCount}
      scale="count"
    />
  );
}
