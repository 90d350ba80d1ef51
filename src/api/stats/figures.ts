/** The figures of an endpoint, the same wherever they are shown. */
import { Type } from 'typebox';
import type { Totals } from '../../postgres/queries/stats.ts';
import { Nullable } from '../http/validation.ts';
import type { Shown } from '../openapi/describe.ts';
import { percentiles, share } from './view.ts';

export const Counts = {
  attempts: Type.Integer(),
  successes: Type.Integer(),
  failures: Type.Integer(),
  retried: Type.Integer(),
  delivered: Type.Integer(),
  dead: Type.Integer(),
};
/** Null if there were no requests: then there is neither success nor failure. */
export const Figures = {
  success_rate: Nullable(
    Type.Number({
      description:
        'Share of requests that succeeded. A failed request counts as a failure even if Posthorn retries it.',
    }),
  ),
  p50_ms: Nullable(Type.Number()),
  p95_ms: Nullable(Type.Number()),
  p99_ms: Nullable(Type.Number()),
  dead_letter_rate: Nullable(Type.Number()),
  retry_distribution: Type.Array(Type.Integer(), {
    description:
      'How many were delivered at the first attempt, the second, and so on; the tenth and later ones together.',
  }),
};
const FigureSchema = Type.Object(Figures);
export function showCounts({ attempts, successes, failures, retried, delivered, dead }: Totals) {
  return { attempts, successes, failures, retried, delivered, dead };
}

export function showFigures(total: Totals): Shown<typeof FigureSchema> {
  const { p50, p95, p99 } = percentiles(total.response);
  return {
    success_rate: share(total.successes, total.attempts),
    p50_ms: p50,
    p95_ms: p95,
    p99_ms: p99,
    dead_letter_rate: share(total.dead, total.delivered + total.dead),
    retry_distribution: total.tries,
  };
}
