import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { isReservedHeader } from '../../deliver/index.ts';
import { explainFilter } from '../../domain/filter.ts';
import { parseFilter } from '../../domain/filter-syntax.ts';
import { invalidFields, Problem } from '../../domain/problem.ts';
import { type NewEvent, readEvent } from '../../ingest/index.ts';
import type { ApiContext } from '../dependencies.ts';
import type { Caller } from '../http/authenticator.ts';
import { Nullable } from '../http/validation.ts';

const FilterTry = Type.Object(
  {
    filter: Nullable(Type.Record(Type.String(), Type.Unknown(), { description: 'As an endpoint has it.' })),
    event: Type.Record(Type.String(), Type.Unknown(), { description: 'As POST /v1/events takes it.' }),
  },
  {
    additionalProperties: false,
    title: 'FilterTry',
    examples: [
      {
        filter: { 'data.amount': { $gte: 100 } },
        event: { type: 'order.created', data: { amount: 250 } },
      },
    ],
  },
);
const FilterTried = Type.Object(
  {
    matches: Type.Boolean(),
    reason: Nullable(Type.String({ description: 'The first condition that fails.' })),
  },
  { title: 'FilterTried', examples: [{ matches: true, reason: null }] },
);

/** The event comes beside a filter. */
const ENVELOPE_BYTES = 128 * 1024;

export function filterRoutes({ limits }: ApiContext): FastifyPluginAsync {
  function readSample(event: Record<string, unknown>, caller: Caller): NewEvent {
    try {
      return readEvent(Buffer.from(JSON.stringify(event)), limits, {
        keyTenant: caller.tenant,
        idempotencyKey: null,
        isReservedHeader,
      });
    } catch (error) {
      throw error instanceof Problem ? inside('event', error) : error;
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
  };
}

/** The same problem, of a field that is an object. */
function inside(field: string, problem: Problem): Problem {
  const errors = problem.errors.map(({ path, message }) => ({ path: `${field}.${path}`, message }));
  return errors.length === 0 ? problem : invalidFields(errors, problem.code);
}
