import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { COUNT_AT_MOST, readQueueNow } from '../../postgres/queries/queue-now.ts';
import { readEventSeries } from '../../postgres/queries/stats.ts';
import { findBusiestTypes, findWorstEndpoints } from '../../postgres/queries/stats-rankings.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { memoizeFor } from '../http/memoize.ts';
import { ListFilters, typeFilter } from '../http/pagination.ts';
import type { Shown } from '../openapi/describe.ts';
import { showCounts } from './figures.ts';
import { StatsSchema } from './schema.ts';
import {
  ageOf,
  readWindow,
  StatsRange,
  share,
  showRates,
  showSeries,
  showWindow,
  successRate,
  throughput,
  totalOf,
  type Window,
} from './view.ts';

const StatsQuery = Type.Object(
  {
    ...StatsRange,
    tenant: ListFilters.tenant,
    type: typeFilter(
      'Limits the figures and the series to this type. `now`, `types` and `endpoints` always cover all types.',
    ),
  },
  { additionalProperties: false },
);
type StatsQuery = Static<typeof StatsQuery>;
type Stats = Shown<typeof StatsSchema>;

const RANKED = 20;

type StatsDependencies = Pick<
  ApiDependencies,
  'pool' | 'clock' | 'endpoints' | 'statsCacheMs' | 'statsMinutesMs'
>;

export function statsRoutes(dependencies: StatsDependencies): FastifyPluginAsync {
  const { pool, clock, statsCacheMs } = dependencies;
  const cachedStats = memoizeFor<Stats>(clock, statsCacheMs);
  const cachedNow = memoizeFor<Stats['now']>(clock, statsCacheMs);
  // Rankings do not depend on the event type, so they have a cache of their own: requests for many types compute them once.
  const cachedRankings = memoizeFor<Awaited<ReturnType<typeof rank>>>(clock, statsCacheMs);

  async function rank(tenant: string | null, window: Window) {
    const [types, endpoints] = await Promise.all([
      findBusiestTypes(pool, tenant ?? '', window, RANKED),
      findWorstEndpoints(pool, tenant ?? '', window, RANKED),
    ]);
    return { types, endpoints };
  }

  async function show(tenant: string | null, type: string | null, window: Window): Promise<Stats> {
    const [series, { types, endpoints }, now] = await Promise.all([
      readEventSeries(pool, tenant ?? '', type ?? '', window),
      cachedRankings(JSON.stringify([tenant, cacheKeyOf(window)]), () => rank(tenant, window)),
      cachedNow(tenant ?? '', () => showNow(dependencies, tenant)),
    ]);
    const total = totalOf(series);
    return {
      ...showWindow(window),
      tenant,
      type,
      accepted: total.accepted,
      ...showCounts(total),
      // `now.retrying` is about the present and about all types. Counting one type would read the whole queue.
      success_rate: successRate(total, type === null && window.name !== null ? now.retrying : 0),
      ...showRates(total),
      throughput_per_second: throughput(total, window),
      now,
      series: showSeries(series, window),
      types: types.map(({ firstTries, ...found }) => ({
        ...found,
        success_rate: successRate({ ...found, firstTries }),
      })),
      endpoints: endpoints.map(({ id, successes, ...found }) => ({
        endpoint_id: publicId(idPrefixes.endpoint, id),
        ...found,
        success_rate: share(successes, found.attempts),
      })),
    };
  }

  return async (server) => {
    server.get<{ Querystring: StatsQuery }>(
      '/stats',
      {
        schema: {
          operationId: 'getStats',
          summary: 'Statistics of everything, of a tenant or of an event type',
          tags: ['Statistics'],
          querystring: StatsQuery,
          response: { 200: StatsSchema },
        },
      },
      async (request) => {
        const { type = null } = request.query;
        const window = readWindow(request.query, clock.now(), dependencies.statsMinutesMs);
        const tenant = visibleTenant(request.caller, request.query.tenant);
        return cachedStats(JSON.stringify([tenant, type, cacheKeyOf(window)]), () =>
          show(tenant, type, window),
        );
      },
    );
  };
}

const cacheKeyOf = ({ name, seconds, at, before }: Window) => name ?? [seconds, at, before];

async function showNow(
  { pool, clock, endpoints }: StatsDependencies,
  tenant: string | null,
): Promise<Stats['now']> {
  const found = await readQueueNow(pool, tenant ?? '');
  const { waiting, retrying, oldest, dead, circuitsOpen } = found;
  const totals = endpoints.totalsOf(tenant);
  return {
    waiting,
    waiting_for_circuit: found.behindOpenCircuit,
    fresh: waiting - retrying,
    retrying,
    oldest_waiting_seconds: ageOf(oldest, clock.now()),
    dead,
    circuits_open: circuitsOpen,
    endpoints: totals.endpoints - totals.notifiers,
    endpoints_disabled: totals.disabled - totals.disabledNotifiers,
    endpoints_paused: totals.paused,
    capped: waiting >= COUNT_AT_MOST || dead >= COUNT_AT_MOST,
  };
}
