import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { findEndpoint } from '../store/queries/endpoints.ts';
import { addTotals, type HourTotals, loadHours, noTotals, type Totals } from '../store/queries/stats.ts';
import type { ApiContext } from './context.ts';
import { EXAMPLE_TIME, idParams, type Shown, Time } from './describe.ts';
import { endpointId, endpointNotFound } from './endpoints.ts';
import { Counts, exampleFigures, Figures, showCounts, showFigures } from './figures.ts';

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

const EndpointId = idParams('ep', 'endpoint');

const StatsSchema = Type.Object(
  {
    window: Type.Enum(Object.keys(WINDOWS) as (keyof typeof WINDOWS)[]),
    ...Counts,
    ...Figures,
    hours: Type.Array(Type.Object({ hour: Time, ...Counts, ...Figures })),
  },
  {
    title: 'EndpointStats',
    examples: [{ window: '24h', ...exampleFigures, hours: [{ hour: EXAMPLE_TIME, ...exampleFigures }] }],
  },
);

export function endpointStatsRoutes({ pool, clock }: ApiContext): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: Static<typeof EndpointId>; Querystring: Static<typeof StatsQuery> }>(
      '/endpoints/:id/stats',
      {
        schema: {
          operationId: 'getEndpointStats',
          summary: 'Figures of an endpoint, hour by hour',
          tags: ['Endpoints'],
          params: EndpointId,
          querystring: StatsQuery,
          response: { 200: StatsSchema },
        },
      },
      async (request): Promise<Shown<typeof StatsSchema>> => {
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
