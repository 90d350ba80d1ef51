/**
 * The figures that docs/performance.md records, in one table for each scenario. The document is the only place that has
 * them: `bench --record` writes a table, and `bench --check` compares with it.
 */
import { replaceMarked } from '../scripts/marked-text.ts';
import { type Bound, type Figure, formatBound, formatValue, isWithin } from './scenario.ts';

/** How much worse than the recorded value a figure may be. */
const TOLERANCE = 1.2;

export const placeOf = (bench: string): string => `performance:${bench}`;

export const isRecorded = (document: string, bench: string): boolean =>
  document.includes(`<!-- ${placeOf(bench)} -->`);

/** Returns the document with the figures in the table of the scenario. */
export function record(
  document: string,
  bench: string,
  figures: readonly Figure[],
  measuredOn: string,
): string {
  const rows = figures.map((figure) => {
    const limit = figure.limit ?? limitOf(figure, figure.value);
    return [
      figure.name,
      formatValue(figure),
      formatGoal(figure),
      limit === undefined ? '' : formatBound(limit),
    ];
  });
  const lines = [
    ['figure', 'measured', 'goal', 'limit of `--check`'],
    ['---', '---:', '---', '---'],
    ...rows,
  ];
  const table = lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  return replaceMarked(document, placeOf(bench), `${table}\n\n${measuredOn}`);
}

/** Returns the figures with the limits that follow from the recorded values. A figure's own limit has precedence. */
export function addRecordedLimits(document: string, bench: string, figures: readonly Figure[]): Figure[] {
  const recorded = readRecorded(document, bench);
  return figures.map((figure) => {
    const value = recorded.get(figure.name);
    const limit = value === undefined ? undefined : limitOf(figure, value);
    return limit === undefined ? figure : { limit, ...figure };
  });
}

/** Returns the recorded values by the names of their figures. */
export function readRecorded(document: string, bench: string): Map<string, number> {
  const [, table = ''] = document.split(`<!-- ${placeOf(bench)} -->`);
  const rows = table.split(`<!-- /${placeOf(bench)} -->`)[0]!.matchAll(/^\| (.+?) \| ([\d.,]+) /gm);
  return new Map(Array.from(rows, ([, name, value]) => [name!, Number(value!.replaceAll(',', ''))]));
}

function limitOf({ better }: Figure, recorded: number): Bound | undefined {
  const round = (value: number): number => Number(value.toPrecision(3));
  if (better === 'lower') return { atMost: round(recorded * TOLERANCE) };
  if (better === 'higher') return { atLeast: round(recorded / TOLERANCE) };
  return undefined;
}

function formatGoal({ goal, value }: Figure): string {
  if (goal === undefined) return '';
  return `${formatBound(goal)} ${isWithin(value, goal) ? '✓' : '✗'}`;
}
