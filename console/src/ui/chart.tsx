/** Line charts drawn by uPlot, in the colours of the theme. The legend shows the values under the pointer. */
import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { computeRange, type ScaleKind, TICK_STEPS } from './chart-scale.ts';
import { findIsolated } from './isolated-values.ts';
import { TIME_LOCALE } from './locale.ts';
import { useTheme } from './theme.ts';

export interface Series {
  readonly name: string;
  readonly colour: 1 | 2 | 3 | 4;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
}

interface ChartProps {
  label: string;
  times: readonly string[];
  series: readonly Series[];
  formatValue: (value: number | null) => string;
  /** Formats the labels of the y axis; `formatValue` by default. */
  formatTick?: (value: number) => string;
  /**
   * `share`: the values are shares of 1, the y axis ends at 1 and starts a little below the smallest value. `count`: the
   * labels of the y axis are whole numbers.
   */
  scale?: ScaleKind;
}

const HEIGHT = 190;

export function Chart({ label, times, series, formatValue, formatTick, scale = 'number' }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointerIndex, setPointerIndex] = useState<number | null>(null);
  const theme = useTheme();
  const appearance = series.map(({ name, colour, isFilled }) => `${name}${colour}${isFilled}`).join();
  const data = useMemo(
    () =>
      [
        times.map((time) => Date.parse(time) / 1000),
        ...series.map(({ values }) => [...values]),
      ] as uPlot.AlignedData,
    [times, series],
  );
  const latest = useRef({ data, series, formatTick: formatTick ?? formatValue });
  latest.current = { data, series, formatTick: formatTick ?? formatValue };

  // biome-ignore lint/correctness/useExhaustiveDependencies: only another theme or other lines need a new plot
  useEffect(() => {
    const element = box.current!;
    const created = new uPlot(
      buildPlotOptions({
        width: element.clientWidth,
        series: latest.current.series,
        scale,
        formatTick: (value) => latest.current.formatTick(value),
        onPointerMove: setPointerIndex,
      }),
      latest.current.data,
      element,
    );
    plot.current = created;
    const observer = new ResizeObserver(() =>
      created.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = null;
    };
  }, [theme, appearance]);

  useEffect(() => plot.current?.setData(data), [data]);

  const shownIndex = pointerIndex !== null && pointerIndex < times.length ? pointerIndex : null;
  return (
    <figure className="card-body stack" aria-label={label}>
      <figcaption className="chart-legend">
        {series.map(({ name, colour, values }) => (
          <span key={name}>
            <i className={`swatch-${colour}`} />
            {name}{' '}
            <b>{formatValue(shownIndex === null ? findLatest(values) : (values[shownIndex] ?? null))}</b>
          </span>
        ))}
        <span className="chart-at faint">
          {shownIndex === null ? 'latest' : formatPointerTime(times[shownIndex]!)}
        </span>
      </figcaption>
      <div className="chart" ref={box} />
    </figure>
  );
}

interface PlotSettings {
  readonly width: number;
  readonly series: readonly Series[];
  readonly scale: ScaleKind;
  readonly formatTick: (value: number) => string;
  readonly onPointerMove: (index: number | null) => void;
}

function buildPlotOptions({ width, series, scale, formatTick, onPointerMove }: PlotSettings): uPlot.Options {
  const axis = {
    stroke: readToken('--chart-axis'),
    font: `11px ${readToken('--font')}`,
    grid: { stroke: readToken('--chart-grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [(self) => onPointerMove(self.cursor.idx ?? null)] },
    scales: { y: { range: (_self, min, max) => computeRange(scale, min, max) } },
    axes: [
      { ...axis, grid: { show: false }, size: 24, space: 64, values: formatTimeTicks },
      {
        ...axis,
        size: 52,
        space: 36,
        incrs: TICK_STEPS[scale],
        values: (_self, ticks) => ticks.map(formatTick),
      },
    ],
    series: [{}, ...series.map(buildLineOptions)],
  };
}

function buildLineOptions({ name, colour, isFilled }: Series): uPlot.Series {
  const stroke = readToken(`--chart-${colour}`);
  return {
    label: name,
    stroke,
    width: 1.6,
    // A line needs two points: a value without neighbours is drawn as a dot.
    points: {
      show: true,
      filter: (self: uPlot, index: number) => findIsolated(self.data[index]!),
      size: 5,
      fill: stroke,
    },
    // While nothing was sent there is no value: a line across the gap would show values that do not exist.
    spanGaps: false,
    ...(isFilled && { fill: `${stroke}22` }),
  };
}

/** The value of a CSS variable of the current theme. */
const readToken = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The value of the last point, or of the one before it while the last one has no value yet. */
const findLatest = (values: readonly (number | null)[]): number | null =>
  values.slice(-2).findLast((value) => value !== null) ?? null;

const formatPointerTime = (at: string): string =>
  new Date(at).toLocaleString(TIME_LOCALE, { weekday: 'short', hour: '2-digit', minute: '2-digit' });

function formatTimeTicks(self: uPlot, ticks: number[]): string[] {
  const spanSeconds = (self.scales.x?.max ?? 0) - (self.scales.x?.min ?? 0);
  return ticks.map((tick) =>
    new Date(tick * 1000).toLocaleString(
      TIME_LOCALE,
      spanSeconds > 2 * 86_400 ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
    ),
  );
}

/** A line without axes, for a table row. */
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
