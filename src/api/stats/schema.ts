import { type TSchema, Type } from 'typebox';
import { Nullable } from '../http/validation.ts';
import { Id, Time } from '../openapi/describe.ts';
import { Counts, Figures } from './figures.ts';
import { windowNames } from './view.ts';

const Count = Type.Integer({ minimum: 0 });
const Rate = (description?: string) =>
  Nullable(Type.Number({ minimum: 0, maximum: 1, ...(description !== undefined && { description }) }));
const SUCCESS_RATE = 'Of the deliveries that ended or are being retried, those that were delivered.';
const Ms = Nullable(Type.Number());
const Percentiles = (description: string) =>
  Type.Object({ p50: Ms, p95: Ms, p99: Ms }, { description: `${description} Accurate to 9.1 %.` });
const Circuit = Type.Enum(['closed', 'open', 'half_open']);

/** For endpoints `accepted` is null: events are accepted for a tenant. */
const point = <Accepted extends TSchema>(accepted: Accepted) =>
  Type.Object({
    at: Time,
    accepted,
    attempts: Count,
    successes: Count,
    failures: Count,
    delivered: Count,
    dead: Count,
    success_rate: Rate(SUCCESS_RATE),
    response_p50_ms: Ms,
    response_p95_ms: Ms,
    response_p99_ms: Ms,
    delivery_p50_ms: Ms,
    delivery_p95_ms: Ms,
    delivery_p99_ms: Ms,
  });

const common = {
  window: Nullable(Type.Enum(windowNames, { description: 'Null if you set `since` or `until`.' })),
  from: Time,
  to: Time,
  bucket_seconds: Type.Integer({ description: 'How long one point of `series` is.' }),
  ...Counts,
  attempt_success_rate: Rate('Of the requests made, those that succeeded.'),
  final_success_rate: Rate('Of the deliveries that ended, those that were delivered.'),
  first_attempt_success_rate: Rate('Of the first attempts, those that succeeded.'),
  dead_letter_rate: Rate('Of the deliveries that ended, those that died.'),
  throughput_per_second: Type.Number({ description: 'Deliveries per second.' }),
  response_ms: Percentiles('How long receivers took to answer.'),
  delivery_ms: Percentiles('From acceptance to delivery.'),
  retry_distribution: Figures.retry_distribution,
};

export const StatsSchema = Type.Object(
  {
    ...common,
    tenant: Nullable(Type.String()),
    type: Nullable(Type.String()),
    accepted: Count,
    success_rate: Rate(SUCCESS_RATE),
    now: Type.Object({
      waiting: Count,
      waiting_for_circuit: Type.Integer({
        minimum: 0,
        description:
          'How many of the waiting deliveries belong to an endpoint whose circuit is open. `retrying` has only those that were tried.',
      }),
      fresh: Count,
      retrying: Count,
      oldest_waiting_seconds: Nullable(Count),
      dead: Count,
      circuits_open: Count,
      endpoints: Count,
      endpoints_disabled: Count,
      endpoints_paused: Count,
      capped: Type.Boolean({
        description: 'Counting stopped at 100,000: `waiting` or `dead` is that or more.',
      }),
    }),
    series: Type.Array(point(Count)),
    types: Type.Array(
      Type.Object({
        type: Type.String(),
        attempts: Count,
        delivered: Count,
        dead: Count,
        success_rate: Rate(SUCCESS_RATE),
      }),
    ),
    endpoints: Type.Array(
      Type.Object({
        endpoint_id: Id('ep'),
        url: Type.String(),
        description: Type.String(),
        tenant: Type.String(),
        enabled: Type.Boolean(),
        paused: Type.Boolean(),
        attempts: Count,
        failures: Count,
        success_rate: Rate('Of the requests made, those that succeeded.'),
        dead: Count,
        circuit: Circuit,
      }),
    ),
  },
  { title: 'Stats' },
);

export const EndpointStatsSchema = Type.Object(
  {
    ...common,
    ...Figures,
    now: Type.Object({
      waiting: Count,
      oldest_waiting_seconds: Nullable(Count),
      dead: Count,
      circuit: Circuit,
    }),
    series: Type.Array(point(Type.Null())),
    hours: Type.Array(Type.Object({ hour: Time, ...Counts, ...Figures })),
  },
  { title: 'EndpointStats' },
);
