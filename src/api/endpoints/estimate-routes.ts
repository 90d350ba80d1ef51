/** What `batch` and `debounce` would save, on the real events of the last hour. */
import type { FastifyPluginAsync } from 'fastify';
import { type Static, Type } from 'typebox';
import { resolveBatch } from '../../domain/batch.ts';
import { resolveDebounce } from '../../domain/debounce.ts';
import { DEFAULT_TENANT } from '../../domain/event.ts';
import { parseFilter } from '../../domain/filter-syntax.ts';
import { invalidFields } from '../../domain/problem.ts';
import { visibleTenant } from '../../manage/caller.ts';
import { checkDebounce } from '../../manage/endpoint-patch.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { TOO_MANY_READERS, takeTurn } from '../events/read-payloads.ts';
import { tenantFilter } from '../http/pagination.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, type Shown, Time } from '../openapi/describe.ts';
import { estimateRequests, MAX_ESTIMATED_EVENTS } from './estimate-requests.ts';
import { settingsSchema } from './schema.ts';
import { BatchSchema, DebounceSchema } from './shaping-schema.ts';

const EstimateRequest = Type.Object(
  {
    tenant: tenantFilter('The owner of the endpoint. Default: the tenant of the key, or `default`.'),
    events: settingsSchema.events,
    channels: settingsSchema.channels,
    filter: settingsSchema.filter,
    payload: settingsSchema.payload,
    batch: Type.Optional(Nullable(BatchSchema)),
    debounce: Type.Optional(Nullable(DebounceSchema)),
  },
  {
    additionalProperties: false,
    title: 'RequestEstimateRequest',
    examples: [{ tenant: 'acme', events: ['order.*'], batch: { max_events: 100, max_wait_ms: 1000 } }],
  },
);

const RequestEstimate = Type.Object(
  {
    since: Type.Unsafe<Date>({
      ...Time,
      description: 'The estimate covers events accepted from this time on.',
    }),
    until: Time,
    events: Type.Integer({
      description:
        'How many of these events the endpoint would have got. Without `batch` and `debounce` there is one request for each.',
    }),
    requests: Type.Integer({
      description: 'How many requests the endpoint would have got, if all of them had succeeded at once.',
    }),
    examined: Type.Integer({
      description: `How many events of the tenant were examined, at most ${MAX_ESTIMATED_EVENTS.toLocaleString('en')}.`,
    }),
    is_complete: Type.Boolean({
      description:
        'True: `since` is one hour before `until`. False: the hour has more events than one estimate examines. It covers only the newest ones, accepted since `since`.',
    }),
  },
  {
    title: 'RequestEstimate',
    examples: [
      {
        since: '2027-01-31T11:00:00.000Z',
        until: EXAMPLE_TIME,
        events: 41_200,
        requests: 312,
        examined: 52_000,
        is_complete: true,
      },
    ],
  },
);

export function estimateRoutes({ pool, clock }: Pick<ApiDependencies, 'pool' | 'clock'>): FastifyPluginAsync {
  return async (server) => {
    server.post<{ Body: Static<typeof EstimateRequest> }>(
      '/shaping/estimate',
      {
        schema: {
          operationId: 'estimateRequests',
          summary: 'Estimate the effect of `batch` or `debounce`',
          description:
            'Counts the requests that an endpoint with these settings would have got for the events of the last hour. Changes and sends nothing. Events that name their endpoints are left out.',
          tags: ['Endpoints'],
          body: EstimateRequest,
          response: { 200: RequestEstimate },
          problems: { forbidden: 'The key belongs to another tenant.', rate_limited: TOO_MANY_READERS },
        },
        config: { reads: true },
      },
      async (request, reply): Promise<Shown<typeof RequestEstimate>> => {
        const { events, channels, filter, payload } = request.body;
        const batch = request.body.batch ?? undefined;
        const debounce = request.body.debounce ?? undefined;
        const parsed = filter == null ? null : parseFilter(filter);
        const errors = [
          ...checkDebounce({ ...(batch && { batch }), ...(debounce && { debounce }) }),
          ...(parsed?.ok === false ? parsed.errors : []),
        ];
        if (errors.length > 0) throw invalidFields(errors);
        const tenant = visibleTenant(request.caller, request.body.tenant) ?? DEFAULT_TENANT;
        const subscription = {
          tenant,
          events: events ?? ['*'],
          channels: channels ?? [],
          filter: parsed?.ok ? parsed.filter : null,
          payload: payload ?? 'full',
        };
        const settings = { batch: resolveBatch(batch), debounce: resolveDebounce(debounce) };
        return takeTurn(tenant, reply, () => estimateRequests(pool, clock, subscription, settings));
      },
    );
  };
}
