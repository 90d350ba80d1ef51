/** An endpoint as the API shows it: with all defaults and its health. */
import { Type } from 'typebox';
import { limitReasons } from '../../domain/adaptive-limits.ts';
import { circuits } from '../../domain/breaker.ts';
import { challenges, disabledReasons, signatureProfiles } from '../../domain/endpoint.ts';
import { jitters, retryPresets } from '../../domain/retry.ts';
import { Nullable } from '../http/validation.ts';
import { EXAMPLE_TIME, exampleId, Id, Time } from '../openapi/describe.ts';
import { Figures } from '../stats/figures.ts';
import { ShownAuth, ShownTls } from './auth-schema.ts';
import { StatusMatcher } from './schema.ts';
import { ShownBatch, ShownDebounce } from './shaping-schema.ts';

const retryRules = {
  jitter: Type.Enum([...jitters]),
  max_age_seconds: Type.Number(),
  permanent: Type.Array(StatusMatcher),
  transient: Type.Array(StatusMatcher),
};
const Retry = Type.Union([
  Type.Object(
    {
      schedule: Type.Array(Type.Number(), { description: 'Seconds before each attempt.' }),
      ...retryRules,
    },
    { title: 'ScheduledRetry' },
  ),
  Type.Object(
    {
      base: Type.Number({ description: 'Seconds before the first retry.' }),
      factor: Type.Number(),
      max: Type.Number(),
      attempts: Type.Integer(),
      ...retryRules,
    },
    { title: 'ExponentialRetry' },
  ),
]);

const Breaker = Type.Object(
  {
    consecutive: Type.Integer(),
    failure_rate: Type.Number(),
    min_requests: Type.Integer(),
    window_seconds: Type.Number(),
    cooldown_seconds: Type.Number(),
    max_cooldown_seconds: Type.Number(),
  },
  { title: 'Breaker' },
);

const Health = Type.Object(
  {
    circuit: Type.Enum([...circuits]),
    opened_at: Nullable(Time),
    next_probe_at: Nullable(Time),
    consecutive_failures: Type.Integer(),
    in_flight_limit: Type.Integer({
      description: 'Requests at the same time, as of now: `max_in_flight`, or fewer while it is slow.',
    }),
    effective_timeout_ms: Type.Integer({
      description: 'The deadline as of now: `timeout_ms`, or less while it is slow and times out.',
    }),
    adaptive: Nullable(
      Type.Object({
        reason: Type.Enum([...limitReasons], {
          description:
            '`slow`: half of its answers took at least half of `timeout_ms`. `timeouts`: and requests timed out, so the deadline is shorter.',
        }),
        since: Time,
      }),
    ),
    waiting: Type.Integer({ description: 'Waiting deliveries, counted up to `count_limit`.' }),
    dead: Type.Integer({ description: 'Dead letters, counted in the same way.' }),
    count_limit: Type.Integer({
      description:
        'Counting stops here: an equal `waiting` or `dead` is that or more. 10,000; in a list at least 200, depending on the size of the page.',
    }),
    skipped_while_disabled: Type.Integer({
      description:
        'Deliveries that were skipped since the endpoint was last disabled, including those that are no longer kept. A few seconds behind.',
    }),
    oldest_waiting_at: Nullable(Time),
    ...Figures,
  },
  { title: 'Health', description: 'The current state, and figures of the last day.' },
);

const fields = {
  id: Id('ep'),
  tenant: Type.String(),
  url: Type.String(),
  description: Type.String(),
  events: Type.Array(Type.String(), { description: 'Event types, prefixes such as `order.*`, or `*`.' }),
  channels: Type.Array(Type.String()),
  filter: Nullable(Type.Record(Type.String(), Type.Unknown())),
  enabled: Type.Boolean(),
  disabled_reason: Nullable(Type.Enum([...disabledReasons])),
  paused: Type.Boolean(),
  api_version: Nullable(Type.String()),
  payload: Type.Enum(['full', 'thin']),
  headers: Type.Record(Type.String(), Type.String(), {
    description:
      '`[redacted]` instead of a value that the key may not read: credentials, and for a read key all values but those of `plain_headers`.',
  }),
  plain_headers: Type.Array(Type.String()),
  auth: Nullable(ShownAuth),
  tls: Nullable(ShownTls),
  signature: Type.Union([
    Type.Enum([...signatureProfiles]),
    Type.Object({
      profile: Type.Enum([...signatureProfiles]),
      header: Type.Optional(Nullable(Type.String())),
      prefix: Type.Optional(Nullable(Type.String())),
    }),
  ]),
  public_key: Nullable(
    Type.String({
      description: 'With `standard-ed25519`: the key that receivers verify with (`whpk_…`). Otherwise null.',
    }),
  ),
  retry: Retry,
  breaker: Nullable(Breaker),
  timeout_ms: Type.Integer(),
  max_in_flight: Type.Integer(),
  adaptive: Type.Enum(['on', 'off']),
  rate_limit: Nullable(Type.Object({ per_second: Type.Number(), burst: Type.Number() })),
  region: Nullable(
    Type.String({ description: 'The region whose workers send to it. Null: the default region.' }),
  ),
  ordering: Type.Enum(['none', 'fifo']),
  fifo_on_dead: Type.Enum(['skip', 'block']),
  follow_redirects: Type.Integer(),
  operator: Type.Boolean({ description: 'True: the endpoint gets the operational events of all tenants.' }),
  challenge: Nullable(Type.Enum([...challenges])),
  batch: Nullable(ShownBatch),
  debounce: Nullable(ShownDebounce),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  signing_secrets: Type.Array(
    Type.Object({
      created_at: Time,
      expires_at: Nullable(Time),
      header: Nullable(Type.String({ description: 'The header that it signs now. Null: it signs none.' })),
      switch_at: Nullable(Time),
    }),
    {
      description:
        'The secrets that sign, the current one first. `expires_at` null: until it is revoked. `switch_at`: from when on it signs the main header.',
    },
  ),
  health: Health,
  created_at: Time,
  updated_at: Time,
};

const example = {
  id: exampleId('ep'),
  tenant: 'acme',
  url: 'https://example.com/hooks',
  description: 'Orders to the warehouse',
  events: ['order.*'],
  channels: [],
  filter: null,
  enabled: true,
  disabled_reason: null,
  paused: false,
  api_version: null,
  payload: 'full',
  headers: {},
  plain_headers: [],
  auth: { type: 'basic', username: 'posthorn', password: '[redacted]' },
  tls: null,
  signature: 'standard',
  public_key: null,
  signing_secrets: [
    { created_at: EXAMPLE_TIME, expires_at: null, header: 'webhook-signature', switch_at: null },
  ],
  retry: {
    schedule: retryPresets.default,
    jitter: 'proportional',
    max_age_seconds: 259_200,
    permanent: ['3xx', '4xx'],
    transient: [408, 425, 429],
  },
  breaker: {
    consecutive: 20,
    failure_rate: 0.8,
    min_requests: 20,
    window_seconds: 600,
    cooldown_seconds: 30,
    max_cooldown_seconds: 3600,
  },
  timeout_ms: 15_000,
  max_in_flight: 10,
  adaptive: 'on',
  rate_limit: null,
  region: null,
  ordering: 'none',
  fifo_on_dead: 'skip',
  follow_redirects: 0,
  operator: false,
  challenge: null,
  batch: null,
  debounce: null,
  metadata: { team: 'logistics' },
  health: {
    circuit: 'closed',
    opened_at: null,
    next_probe_at: null,
    consecutive_failures: 0,
    in_flight_limit: 10,
    effective_timeout_ms: 15_000,
    adaptive: null,
    waiting: 0,
    dead: 0,
    count_limit: 10_000,
    skipped_while_disabled: 0,
    oldest_waiting_at: null,
    success_rate: 1,
    p50_ms: 8.5,
    p95_ms: 12.4,
    p99_ms: 21,
    dead_letter_rate: 0,
    retry_distribution: [118, 2],
  },
  created_at: EXAMPLE_TIME,
  updated_at: EXAMPLE_TIME,
};

const Warnings = Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), {
  description:
    'Settings that are valid and probably a mistake: an event type that the catalogue does not have, a filter operator without `$`, a second endpoint with the same URL.',
});
const exampleWarnings = [{ path: 'events[0]', message: '"order.*" matches no event type in the catalogue' }];

export const EndpointSchema = Type.Object(fields, { title: 'Endpoint', examples: [example] });

export const CreatedEndpoint = Type.Object(
  {
    ...fields,
    warnings: Warnings,
    secret: Nullable(
      Type.String({
        description:
          'The signing secret. Store it where the receiver runs. Null with `standard-ed25519`: receivers need only `public_key`.',
      }),
    ),
  },
  { title: 'CreatedEndpoint', examples: [{ ...example, warnings: exampleWarnings, secret: 'whsec_…' }] },
);

export const ChangedEndpoint = Type.Object(
  { ...fields, warnings: Warnings },
  { title: 'ChangedEndpoint', examples: [{ ...example, warnings: exampleWarnings }] },
);
