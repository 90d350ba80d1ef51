import type { Postgres, Receiver } from './harness.ts';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** Identifies the figure in the output of `--json`. */
  readonly id?: string;
  /** The value we aim for. */
  readonly goal?: Bound;
  /** `--check` fails if the value is worse than this. */
  readonly limit?: Bound;
  /** `--check` fails if the value is over 20 % worse than the one that docs/performance.md records. */
  readonly better?: 'lower' | 'higher';
}

export type Bound = { readonly atLeast: number } | { readonly atMost: number };

export interface BenchContext {
  readonly postgres: Postgres;
  readonly receiver: Receiver;
  /** How often to repeat a measurement whose median counts. */
  readonly runs: number;
  /** Shorter and smaller: shows that the scenario works, not how fast Posthorn is. */
  readonly quick: boolean;
  readonly onProgress: (text: string) => void;
}

export interface Bench {
  readonly name: string;
  run(context: BenchContext): Promise<Figure[]>;
}

export function isWithin(value: number, bound: Bound | undefined): boolean {
  if (bound === undefined) return true;
  return 'atLeast' in bound ? value >= bound.atLeast : value <= bound.atMost;
}

export function formatValue({ value, unit }: Figure): string {
  const digits = unit === '×' || unit === '% of a core' ? 2 : value < 100 ? 1 : 0;
  return `${value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

export function formatBound(limit: Bound): string {
  return 'atLeast' in limit ? `≥ ${limit.atLeast}` : `≤ ${limit.atMost}`;
}
