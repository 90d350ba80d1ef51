/** Writes small charts as SVG text: no scripts, no fonts of its own, readable on light and dark pages. */

const WIDTH = 760;
const FONT = 'font-family="system-ui, sans-serif" font-size="12"';
export const colours = [
  '#2563eb',
  '#d97706',
  '#dc2626',
  '#059669',
  '#7c3aed',
  '#0891b2',
  '#64748b',
  '#be185d',
];

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

interface TextOptions {
  readonly anchor?: 'start' | 'middle' | 'end';
  readonly weight?: 'bold';
  readonly fill?: string;
}

const text = (x: number, y: number, content: string, options: TextOptions = {}): string => {
  const { anchor = 'start', weight, fill = '#1f2937' } = options;
  const bold = weight === undefined ? '' : ` font-weight="${weight}"`;
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="${fill}"${bold}>${escapeText(content)}</text>`;
};

const line = (x1: number, y1: number, x2: number, y2: number, stroke = '#d1d5db'): string =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${stroke}"/>`;

const round = (value: number): number => Math.round(value * 10) / 10;

function frame(title: string, height: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeText(title)}" ${FONT}>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
${text(16, 24, title, { weight: 'bold' })}
${parts.join('\n')}
</svg>
`;
}

function legend(names: readonly string[], y: number): string[] {
  let x = 16;
  return names.flatMap((name, index) => {
    const parts = [
      `<circle cx="${x + 5}" cy="${y - 4}" r="5" fill="${colours[index % colours.length]}"/>`,
      text(x + 15, y, name),
    ];
    x += 32 + name.length * 6.6;
    return parts;
  });
}

export interface DotRow {
  readonly label: string;
  /** One value per series, between 0 and 1. */
  readonly values: readonly number[];
}

/** A row per label, a dot per series, on a scale of shares from `from` to 1. */
export function dotChart(
  title: string,
  series: readonly string[],
  rows: readonly DotRow[],
  from = 0,
): string {
  const [left, top, rowHeight] = [170, 62, 24];
  const height = top + rows.length * rowHeight + 36;
  const x = (share: number): number => left + ((share - from) / (1 - from)) * (WIDTH - left - 60);
  const steps = Array.from({ length: 11 }, (_, step) => from + ((1 - from) * step) / 10);
  const grid = steps.flatMap((share) => [
    line(x(share), top - 8, x(share), height - 32, '#e5e7eb'),
    text(x(share), height - 14, `${Math.round(share * 100)} %`, { anchor: 'middle', fill: '#6b7280' }),
  ]);
  const dots = rows.flatMap(({ label, values }, row) => {
    const y = top + row * rowHeight + 8;
    return [
      text(left - 12, y + 4, label, { anchor: 'end' }),
      line(left, y, WIDTH - 60, y, '#f3f4f6'),
      ...values.map(
        (value, index) =>
          `<circle cx="${round(x(Math.max(from, value)))}" cy="${y}" r="5.5" fill="${colours[index]}"><title>${escapeText(label)}, ${escapeText(series[index]!)}: ${(value * 100).toFixed(1)} %</title></circle>`,
      ),
    ];
  });
  return frame(title, height, [...legend(series, 44), ...grid, ...dots]);
}

export interface Axis {
  readonly label: string;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
  readonly isLogarithmic?: boolean;
}

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Lines, or labelled dots, between the first and the last tick of both axes. */
export function xyChart(
  title: string,
  axes: { x: Axis; y: Axis },
  series: readonly Series[],
  kind: 'lines' | 'dots',
): string {
  const [left, top, right, bottom, height] = [64, 62, 24, 48, 380];
  const scaleOf = (axis: Axis, from: number, to: number): ((value: number) => number) => {
    const position = (value: number): number => (axis.isLogarithmic ? Math.log(value) : value);
    const [first, last] = [position(axis.ticks[0]!.at), position(axis.ticks.at(-1)!.at)];
    return (value) =>
      from + ((Math.min(last, Math.max(first, position(value))) - first) / (last - first)) * (to - from);
  };
  const x = scaleOf(axes.x, left, WIDTH - right);
  const y = scaleOf(axes.y, height - bottom, top);
  const grid = [
    ...axes.x.ticks.flatMap(({ at, label }) => [
      line(x(at), top, x(at), height - bottom, '#e5e7eb'),
      text(x(at), height - bottom + 16, label, { anchor: 'middle', fill: '#6b7280' }),
    ]),
    ...axes.y.ticks.flatMap(({ at, label }) => [
      line(left, y(at), WIDTH - right, y(at), '#e5e7eb'),
      text(left - 8, y(at) + 4, label, { anchor: 'end', fill: '#6b7280' }),
    ]),
    text(WIDTH - right, height - 10, axes.x.label, { anchor: 'end', fill: '#6b7280' }),
    text(left, top - 8, axes.y.label, { fill: '#6b7280' }),
  ];
  const drawn = series.flatMap(({ name, points }, index) => {
    const colour = colours[index % colours.length]!;
    if (kind === 'lines') {
      const path = points.map(([px, py]) => `${round(x(px))},${round(y(py))}`).join(' ');
      return [`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`];
    }
    return points.flatMap(([px, py]) => [
      `<circle cx="${round(x(px))}" cy="${round(y(py))}" r="5" fill="${colour}"/>`,
      text(x(px) + 9, y(py) + 4, name, { fill: colour }),
    ]);
  });
  const names =
    kind === 'lines'
      ? legend(
          series.map(({ name }) => name),
          44,
        )
      : [];
  return frame(title, height, [...names, ...grid, ...drawn]);
}
