/** The figures over time, of everything or of one endpoint. */
import { useMemo } from 'react';
import type { Stats, StatsPoint } from '../api/types.ts';
import { Chart, type Series } from '../ui/chart.tsx';
import { showCount, showMs, showPerSecond, showRate } from '../ui/format.ts';

interface ChartProps {
  stats: Pick<Stats, 'series' | 'bucket_seconds' | 'to'> | undefined;
}

const NO_POINTS: readonly StatsPoint[] = [];

/** How long each point is: the last one has only just begun. */
function secondsOf({ at }: StatsPoint, { bucket_seconds, to }: NonNullable<ChartProps['stats']>): number {
  return Math.max(1, Math.min(bucket_seconds, (Date.parse(to) - Date.parse(at)) / 1000));
}

/** Deliveries a second just now: of the last point, and of the one before while that is young. */
export function latestRate(stats: NonNullable<ChartProps['stats']>): number {
  const latest = stats.series.slice(-2);
  const seconds = latest.reduce((sum, point) => sum + secondsOf(point, stats), 0);
  return latest.reduce((sum, { delivered }) => sum + delivered, 0) / Math.max(1, seconds);
}

function useTimes(stats: ChartProps['stats']): { points: readonly StatsPoint[]; times: readonly string[] } {
  return useMemo(() => {
    const points = stats?.series ?? NO_POINTS;
    return { points, times: points.map(({ at }) => at) };
  }, [stats]);
}

export function ThroughputChart({ stats }: ChartProps) {
  const { points, times } = useTimes(stats);
  const series = useMemo((): Series[] => {
    const perSecond = (of: (point: StatsPoint) => number | null | undefined) =>
      points.map((point) => (of(point) ?? 0) / secondsOf(point, stats!));
    const delivered = perSecond((point) => point.delivered);
    if (!points.some((point) => point.accepted != null))
      return [{ name: 'Delivered', colour: 1, filled: true, values: delivered }];
    return [
      { name: 'Delivered', colour: 1, filled: true, values: delivered },
      { name: 'Accepted', colour: 2, values: perSecond((point) => point.accepted) },
    ];
  }, [points, stats]);
  return (
    <Chart
      label="Deliveries per second over time"
      times={times}
      series={series}
      show={(value) => showPerSecond(value ?? 0)}
    />
  );
}

export function LatencyChart({ stats }: ChartProps) {
  const { points, times } = useTimes(stats);
  const series = useMemo(
    (): Series[] => [
      { name: 'p50', colour: 2, values: points.map((point) => point.response_p50_ms) },
      { name: 'p95', colour: 1, values: points.map((point) => point.response_p95_ms) },
      { name: 'p99', colour: 3, values: points.map((point) => point.response_p99_ms) },
    ],
    [points],
  );
  return (
    <Chart label="Percentiles of the response time over time" times={times} series={series} show={showMs} />
  );
}

export function SuccessChart({ stats }: ChartProps) {
  const { points, times } = useTimes(stats);
  const series = useMemo(
    (): Series[] => [
      { name: 'Success', colour: 2, filled: true, values: points.map((point) => point.success_rate) },
    ],
    [points],
  );
  return (
    <Chart
      label="Success rate over time"
      times={times}
      series={series}
      show={showRate}
      tick={(share) => `${Math.round(share * 100)}%`}
      isShare
    />
  );
}

export function FailureChart({ stats }: ChartProps) {
  const { points, times } = useTimes(stats);
  const series = useMemo(
    (): Series[] => [
      { name: 'Failed requests', colour: 3, filled: true, values: points.map((point) => point.failures) },
      { name: 'Dead letters', colour: 4, values: points.map((point) => point.dead) },
    ],
    [points],
  );
  return (
    <Chart
      label="Failures over time"
      times={times}
      series={series}
      show={(value) => showCount(Math.round(value ?? 0))}
    />
  );
}
