import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { notFound, readObjectId } from '../../manage/object-ids.ts';
import { findEndpoint } from '../../postgres/queries/endpoints.ts';
import { HOUR, readEndpointSeries } from '../../postgres/queries/stats.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { idParams, type Shown } from '../openapi/describe.ts';
import { showCounts, showFigures } from '../stats/figures.ts';
import { EndpointStatsSchema } from '../stats/schema.ts';
import {
  ageOf,
  readWindow,
  StatsRange,
  showRates,
  showSeries,
  showWindow,
  throughput,
  totalOf,
} from '../stats/view.ts';

const StatsQuery = Type.Object(StatsRange, { additionalProperties: false });
const EndpointId = idParams('ep', 'endpoint');

export function endpointStatsRoutes({
  pool,
  clock,
  statsMinutesMs,
}: Pick<ApiDependencies, 'pool' | 'clock' | 'statsMinutesMs'>): FastifyPluginAsync {
  return async (server) => {
    server.get<{ Params: Static<typeof EndpointId>; Querystring: Static<typeof StatsQuery> }>(
      '/endpoints/:id/stats',
      {
        schema: {
          operationId: 'getEndpointStats',
          summary: 'Statistics of an endpoint',
          tags: ['Endpoints'],
          params: EndpointId,
          querystring: StatsQuery,
          response: { 200: EndpointStatsSchema },
        },
      },
      async (request): Promise<Shown<typeof EndpointStatsSchema>> => {
        const id = readObjectId('endpoint', request.params.id);
        const endpoint = await findEndpoint(pool, id, request.caller.tenant);
        if (endpoint === null) throw notFound('endpoint', id);
        const window = readWindow(request.query, clock.now(), statsMinutesMs);
        const firstHour = Math.floor(window.at / (HOUR * 1000)) * HOUR * 1000;
        const [series, hours] = await Promise.all([
          readEndpointSeries(pool, id, window),
          readEndpointSeries(pool, id, { seconds: HOUR, at: firstHour, before: window.before }),
        ]);
        const total = totalOf(series);
        return {
          ...showWindow(window),
          ...showCounts(total),
          ...showRates(total),
          ...showFigures(total),
          throughput_per_second: throughput(total, window),
          now: {
            waiting: endpoint.waiting,
            oldest_waiting_seconds: ageOf(endpoint.oldest_waiting, clock.now()),
            dead: endpoint.dead,
            circuit: endpoint.circuit ?? 'closed',
          },
          series: showSeries(series, window).map((point) => ({ ...point, accepted: null })),
          hours: hours.map((hour) => ({
            hour: new Date(hour.at),
            ...showCounts(hour),
            ...showFigures(hour),
          })),
        };
      },
    );
  };
}
