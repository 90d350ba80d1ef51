/** Lines over time, drawn by uPlot. Colours come from the theme; the legend shows the values under the pointer. */
import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useTheme } from './theme.ts';

export interface Series {
  readonly name: string;
  readonly colour: 1 | 2 | 3 | 4;
  readonly values: readonly (number | null)[];
  readonly filled?: boolean;
}

interface ChartProps {
  label: string;
  times: readonly string[];
  series: readonly Series[];
  show: (value: number | null) => string;
  /** As it stands at the axis; as the values, if not given. */
  tick?: (value: number) => string;
  /** A share: from a little below the lowest up to 1. */
  isShare?: boolean;
}

const HEIGHT = 190;
const css = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function Chart({ label, times, series, show, tick, isShare = false }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const theme = useTheme();
  const shape = series.map(({ name, colour, filled }) => `${name}${colour}${filled}`).join();
  const data = useMemo(
    () =>
      [
        times.map((time) => Date.parse(time) / 1000),
        ...series.map(({ values }) => [...values]),
      ] as uPlot.AlignedData,
    [times, series],
  );
  const latest = useRef({ data, series, tick: tick ?? show });
  latest.current = { data, series, tick: tick ?? show };

  // biome-ignore lint/correctness/useExhaustiveDependencies: drawn anew for another theme or other lines only
  useEffect(() => {
    const element = box.current!;
    const axis = {
      stroke: css('--chart-axis'),
      font: `11px ${css('--font')}`,
      grid: { stroke: css('--chart-grid'), width: 1 },
      ticks: { show: false },
    };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        padding: [8, 16, 0, 0],
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        hooks: { setCursor: [(self) => setAt(self.cursor.idx ?? null)] },
        scales: {
          y: {
            range: (_self, min, max) =>
              isShare
                ? [Math.max(0, Math.floor(((min ?? 1) - 0.05) * 10) / 10), 1]
                : [0, max === null || max === 0 ? 1 : max * 1.1],
          },
        },
        axes: [
          { ...axis, grid: { show: false }, size: 24, space: 64, values: timeLabels },
          {
            ...axis,
            size: 52,
            space: 36,
            values: (_self, ticks) => ticks.map((value) => latest.current.tick(value)),
          },
        ],
        series: [
          {},
          ...latest.current.series.map(({ name, colour, filled }) => {
            const stroke = css(`--chart-${colour}`);
            return {
              label: name,
              stroke,
              width: 1.6,
              // A line needs two of them: one alone is a dot.
              points: {
                show: (self: uPlot, index: number) => isLonely(self.data[index]!),
                size: 6,
                fill: stroke,
              },
              spanGaps: true,
              ...(filled && { fill: `${stroke}22` }),
            };
          }),
        ],
      },
      latest.current.data,
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [theme, shape]);

  useEffect(() => plot.current?.setData(data), [data]);

  const shownAt = at !== null && at < times.length ? at : null;
  return (
    <figure className="card-body stack" aria-label={label}>
      <figcaption className="chart-legend">
        {series.map(({ name, colour, values }) => (
          <span key={name}>
            <i className={`swatch-${colour}`} />
            {name} <b>{show(shownAt === null ? lastOf(values) : (values[shownAt] ?? null))}</b>
          </span>
        ))}
        <span className="chart-at faint">{shownAt === null ? 'latest' : timeOf(times[shownAt]!)}</span>
      </figcaption>
      <div className="chart" ref={box} />
    </figure>
  );
}

const isLonely = (values: Iterable<number | null | undefined>): boolean =>
  [...values].filter((value) => value != null).length === 1;

const lastOf = (values: readonly (number | null)[]): number | null =>
  values.findLast((value) => value !== null) ?? null;

const timeOf = (at: string): string =>
  new Date(at).toLocaleString('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' });

function timeLabels(self: uPlot, ticks: number[]): string[] {
  const span = (self.scales.x?.max ?? 0) - (self.scales.x?.min ?? 0);
  return ticks.map((tick) =>
    new Date(tick * 1000).toLocaleString(
      'en-GB',
      span > 2 * 86_400 ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
    ),
  );
}

/** A line without axes, for a row of a table. */
export function Sparkline({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const known = values.map((value) => value ?? 0);
  const max = Math.max(...known, 1);
  const width = 96;
  const height = 22;
  const step = known.length > 1 ? width / (known.length - 1) : width;
  const points = known.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(height - 2 - (value / max) * (height - 4)).toFixed(1)}`,
  );
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
      preserveAspectRatio="none"
    >
      <polyline
        points={points.join(' ')}
        fill="none"
        stroke="var(--chart-1)"
        strokeWidth="1.5"
        strokeLinejoin="round"
      />
    </svg>
  );
}
