import type { FastifyPluginAsync } from 'fastify';
import type { Static } from 'typebox';
import { isReservedHeader } from '../../deliver/index.ts';
import { explainFilter } from '../../domain/filter.ts';
import { parseFilter } from '../../domain/filter-syntax.ts';
import { invalidFields, Problem } from '../../domain/problem.ts';
import { type NewEvent, readEvent } from '../../ingest/index.ts';
import { type Caller, visibleTenant } from '../../manage/caller.ts';
import type { Pool } from '../../postgres/database.ts';
import type { PublishLimits } from '../dependencies.ts';
import { TOO_MANY_READERS, takeTurn } from '../events/read-payloads.ts';
import { countMatches } from './count-matches.ts';
import { FilterCount, FilterCounted, FilterTried, FilterTry } from './schema.ts';

/** Room for the filter and for what is around `data` of the event. */
const ENVELOPE_BYTES = 128 * 1024;

export function filterRoutes(limits: PublishLimits, pool: Pool): FastifyPluginAsync {
  function readSample(event: Record<string, unknown>, caller: Caller): NewEvent {
    try {
      return readEvent(Buffer.from(JSON.stringify(event)), limits, {
        keyTenant: caller.tenant,
        idempotencyKey: null,
        isReservedHeader,
      });
    } catch (error) {
      throw error instanceof Problem ? prefixPaths('event', error) : error;
    }
  }

  return async (server) => {
    server.post<{ Body: Static<typeof FilterTry> }>(
      '/filters/try',
      {
        schema: {
          operationId: 'tryFilter',
          summary: 'Try a filter on an event that is neither stored nor sent',
          tags: ['Filters'],
          body: FilterTry,
          response: { 200: FilterTried },
          problems: { forbidden: 'The event names another tenant than that of the key.' },
        },
        config: { reads: true },
        bodyLimit: limits.maxEventBytes + ENVELOPE_BYTES,
      },
      async (request) => {
        const { filter, event } = request.body;
        const parsed = filter === null ? null : parseFilter(filter);
        if (parsed?.ok === false) throw invalidFields(parsed.errors);
        const sample = readSample(event, request.caller);
        if (parsed === null) return { matches: true, reason: null };
        return explainFilter(parsed.filter, { ...sample, data: event.data });
      },
    );

    server.post<{ Body: Static<typeof FilterCount> }>(
      '/filters/count',
      {
        schema: {
          operationId: 'countFilterMatches',
          summary: 'Count the last 100 events that a filter selects',
          tags: ['Filters'],
          body: FilterCount,
          response: { 200: FilterCounted },
          problems: { forbidden: 'The key belongs to another tenant.', rate_limited: TOO_MANY_READERS },
        },
        config: { reads: true },
      },
      async (request, reply) => {
        const { filter, events = ['*'] } = request.body;
        const parsed = filter === null ? null : parseFilter(filter);
        if (parsed?.ok === false) throw invalidFields(parsed.errors);
        const tenant = visibleTenant(request.caller, request.body.tenant);
        if (parsed === null) return countMatches(pool, tenant, events, null);
        return takeTurn(tenant, reply, () => countMatches(pool, tenant, events, parsed.filter));
      },
    );
  };
}

/** The same problem, with the paths of its errors inside of `field`. */
function prefixPaths(field: string, problem: Problem): Problem {
  const errors = problem.errors.map(({ path, message }) => ({ path: `${field}.${path}`, message }));
  return errors.length === 0 ? problem : invalidFields(errors, problem.code);
}
