import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { percentileOf } from '../domain/histogram.ts';
import { findEndpoint } from '../store/queries/endpoints.ts';
import { addTotals, type HourTotals, loadHours, noTotals, type Totals } from '../store/queries/stats.ts';
import type { ApiContext } from './context.ts';
import { endpointId, endpointNotFound } from './endpoints.ts';

const HOUR_MS = 3_600_000;
const WINDOWS = { '1h': HOUR_MS, '24h': 24 * HOUR_MS, '7d': 7 * 24 * HOUR_MS };
const StatsQuery = Type.Object(
  {
    window: Type.Optional(
      Type.Enum(Object.keys(WINDOWS) as (keyof typeof WINDOWS)[], {
        description: 'In whole hours: the first may have begun a little earlier.',
      }),
    ),
  },
  { additionalProperties: false },
);

export function endpointStatsRoutes({ pool, clock }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: { id: string }; Querystring: Static<typeof StatsQuery> }>(
      '/endpoints/:id/stats',
      { schema: { querystring: StatsQuery } },
      async (request) => {
        const id = endpointId(request.params.id);
        if ((await findEndpoint(pool, id, request.caller.tenant)) === null)
          throw endpointNotFound(request.params.id);
        const window = request.query.window ?? '24h';
        const hours = await loadHours(pool, id, clock.now() - WINDOWS[window]);
        return {
          window,
          ...showCounts(totalOf(hours)),
          ...showFigures(totalOf(hours)),
          hours: hours.map((hour) => ({
            hour: new Date(hour.hour),
            ...showCounts(hour),
            ...showFigures(hour),
          })),
        };
      },
    );
  };
}

function totalOf(hours: readonly HourTotals[]): Totals {
  const total = noTotals();
  for (const hour of hours) addTotals(total, hour);
  return total;
}

function showCounts({ attempts, successes, failures, retried, delivered, dead }: Totals) {
  return { attempts, successes, failures, retried, delivered, dead };
}

/** Null where nothing happened: no requests is neither success nor failure. */
export function showFigures(total: Totals) {
  const share = (part: number, whole: number) =>
    whole === 0 ? null : Math.round((part / whole) * 1e4) / 1e4;
  const percentile = (p: number) => {
    const ms = percentileOf(total.latency, p);
    return ms === null ? null : Math.round(ms * 10) / 10;
  };
  return {
    success_rate: share(total.successes, total.attempts),
    p50_ms: percentile(0.5),
    p95_ms: percentile(0.95),
    p99_ms: percentile(0.99),
    dead_letter_rate: share(total.dead, total.delivered + total.dead),
    /** How many were delivered at the first try, the second, and so on. */
    retry_distribution: total.tries,
  };
}
