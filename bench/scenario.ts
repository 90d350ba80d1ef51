import type { Postgres, Receiver } from './harness.ts';

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** For machines, and for `--check`. */
  readonly id?: string;
  /** What we want. */
  readonly goal?: Bound;
  /** Below (or above) this `--check` fails. */
  readonly floor?: Bound;
}

export type Bound = { readonly atLeast: number } | { readonly atMost: number };

export interface BenchContext {
  readonly postgres: Postgres;
  readonly receiver: Receiver;
  /** How often to repeat what is compared by its median. */
  readonly runs: number;
  /** Shorter and smaller, to see that it works. */
  readonly quick: boolean;
  readonly progress: (text: string) => void;
}

export interface Bench {
  readonly name: string;
  run(context: BenchContext): Promise<Figure[]>;
}

export function holds(value: number, bound: Bound | undefined): boolean {
  if (bound === undefined) return true;
  return 'atLeast' in bound ? value >= bound.atLeast : value <= bound.atMost;
}
