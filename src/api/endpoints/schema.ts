/** The settings of an endpoint, as callers send them. */
import { type Static, Type } from 'typebox';
import { findUrlSyntaxError } from '../../deliver/index.ts';
import { challenges, signatureProfiles } from '../../domain/endpoint.ts';
import {
  EVENT_PATTERN,
  EVENT_PATTERN_RULE,
  MAX_EVENT_PATTERN_LENGTH,
  TENANT_ID,
  TENANT_ID_RULE,
} from '../../domain/event.ts';
import { HEADER_NAME, HEADER_VALUE } from '../../domain/header-names.ts';
import type { FieldError } from '../../domain/problem.ts';
import { REGION_NAME, REGION_NAME_RULE } from '../../domain/region.ts';
import { jitters, retryPresets } from '../../domain/retry.ts';
import { findSettingErrors, MAX_PATCHED_HEADERS } from '../../manage/endpoint-patch.ts';
import { MAX_METADATA_ENTRIES } from '../../manage/metadata.ts';
import { documentedAs, Nullable, withLaterCheck, withLaterChecks, withMessage } from '../http/validation.ts';
import { AuthSchema, TlsSchema } from './auth-schema.ts';
import { Secret } from './secret-schema.ts';
import { BatchSchema, DebounceSchema } from './shaping-schema.ts';

const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
export const StatusMatcher = Type.Union(
  [Type.Integer({ minimum: 100, maximum: 599 }), Type.Enum([...STATUS_CLASSES])],
  withMessage(
    `must be a status code from 100 to 599, or one of ${STATUS_CLASSES.map((name) => `"${name}"`).join(', ')}`,
  ),
);
const Seconds = Type.Number({ minimum: 0, maximum: 30 * 86_400 });

export const RetrySchema = Type.Object(
  {
    preset: Type.Optional(Type.Enum(Object.keys(retryPresets) as (keyof typeof retryPresets)[])),
    schedule: Type.Optional(
      Type.Array(Seconds, {
        minItems: 1,
        maxItems: 50,
        description: 'Seconds before each attempt, the first included.',
      }),
    ),
    base: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 86_400, description: 'Seconds before the first retry.' }),
    ),
    factor: Type.Optional(Type.Number({ minimum: 1, maximum: 100 })),
    max: Type.Optional(Seconds),
    attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
    jitter: Type.Optional(Type.Enum([...jitters])),
    max_age_seconds: Type.Optional(Type.Number({ minimum: 1, maximum: 90 * 86_400 })),
    permanent: Type.Optional(Type.Array(StatusMatcher, { maxItems: 100 })),
    transient: Type.Optional(Type.Array(StatusMatcher, { maxItems: 100 })),
  },
  { additionalProperties: false },
);

export const BreakerSchema = Type.Object(
  {
    consecutive: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
    failure_rate: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 1 })),
    min_requests: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    window_seconds: Type.Optional(Type.Number({ minimum: 1, maximum: 86_400 })),
    cooldown_seconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 86_400 })),
    max_cooldown_seconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 7 * 86_400 })),
  },
  { additionalProperties: false },
);

const RateLimitSchema = Type.Object(
  {
    per_second: Type.Number({ exclusiveMinimum: 0, maximum: 100_000 }),
    burst: Type.Optional(Type.Number({ minimum: 1, maximum: 100_000 })),
  },
  { additionalProperties: false },
);

const SignatureSchema = Type.Union([
  Type.Enum([...signatureProfiles]),
  Type.Object(
    {
      profile: Type.Enum([...signatureProfiles]),
      header: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 128,
          pattern: HEADER_NAME.source,
          ...withMessage('is reserved, or is not a valid header name'),
        }),
      ),
      prefix: Type.Optional(Type.String({ maxLength: 64 })),
    },
    { additionalProperties: false },
  ),
]);

const EventPattern = Type.String({
  minLength: 1,
  maxLength: MAX_EVENT_PATTERN_LENGTH,
  pattern: EVENT_PATTERN.source,
  ...withMessage(EVENT_PATTERN_RULE),
});

const HEADERS =
  'Posthorn sends these headers with every request, and stores them encrypted. Attempts show `[redacted]` instead of the values, and so does the endpoint to read keys. A value of `[redacted]` keeps the stored one.';
/** Only for the OpenAPI document: the control plane checks this with better messages. */
const DocumentedHeaders = Type.Record(
  Type.String(),
  Nullable(Type.String({ maxLength: 4096, pattern: HEADER_VALUE.source })),
  { propertyNames: { pattern: HEADER_NAME.source }, maxProperties: 50, description: HEADERS },
);

const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'The address that gets the requests: https, unless the operator allows http.',
  ...withLaterCheck(findUrlSyntaxError),
});

/** Errors of valid fields that the control plane would find: settings that exclude each other, and an invalid `auth.token_url`. */
function findLaterErrors(valid: Readonly<Record<string, unknown>>): FieldError[] {
  const { token_url: tokenUrl } = (valid.auth ?? {}) as { readonly token_url?: unknown };
  const message = typeof tokenUrl === 'string' ? findUrlSyntaxError(tokenUrl) : null;
  return [...findSettingErrors(valid), ...(message === null ? [] : [{ path: 'auth.token_url', message }])];
}

export const ApiVersion = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[ -~]*$',
  description:
    'The version of event types that the endpoint gets, such as `2026-04-01` or `v2`: payloads in other versions are converted. A date also stands for the newest version before it. Sent as `posthorn-api-version`. Default: that of the tenant; null: events as they were published.',
  ...withMessage('must be 1 to 64 printable ASCII characters'),
});

/** Null restores the default of a setting. */
export const settingsSchema = {
  url: Type.Optional(Url),
  description: Type.Optional(Nullable(Type.String({ maxLength: 500 }))),
  metadata: Type.Optional(
    Nullable(
      Type.Record(Type.String({ maxLength: 128 }), Type.Unknown(), {
        maxProperties: MAX_METADATA_ENTRIES,
        description: 'Your own data, at most 16 KiB.',
      }),
    ),
  ),
  enabled: Type.Optional(
    Nullable(
      Type.Boolean({
        description: 'False: new events are not sent to it, and its waiting deliveries are skipped.',
      }),
    ),
  ),
  paused: Type.Optional(
    Nullable(Type.Boolean({ description: 'True: its deliveries wait until it is resumed.' })),
  ),
  events: Type.Optional(
    Nullable(
      Type.Array(EventPattern, {
        minItems: 1,
        maxItems: 500,
        description:
          'Event types, prefixes such as `order.*`, or `*`, the default. `*` matches everything except operational events (`posthorn.…`), which must be named.',
      }),
    ),
  ),
  channels: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 50,
        description: 'The endpoint gets only events with one of these channels. Empty: all events.',
      }),
    ),
  ),
  filter: Type.Optional(
    Nullable(
      Type.Record(Type.String(), Type.Unknown(), {
        // More do not fit into the 16 KiB that a filter may have.
        maxProperties: MAX_METADATA_ENTRIES,
        description: 'A condition on the content of events, such as {"data.amount": {"$gte": 100}}.',
      }),
    ),
  ),
  api_version: Type.Optional(Nullable(ApiVersion)),
  payload: Type.Optional(
    Nullable(
      Type.Enum(['full', 'thin'], { description: '`thin`: a link to the event instead of its `data`.' }),
    ),
  ),
  headers: Type.Optional(
    Nullable(
      Type.Record(Type.String(), Nullable(Type.String({ maxLength: 4096 })), {
        maxProperties: MAX_PATCHED_HEADERS,
        ...documentedAs(DocumentedHeaders),
      }),
    ),
  ),
  plain_headers: Type.Optional(
    Nullable(
      Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
        maxItems: 50,
        description:
          'Names of headers whose values are not secret: the endpoint and its attempts show them to every key that may see them.',
      }),
    ),
  ),
  auth: Type.Optional(Nullable(AuthSchema)),
  tls: Type.Optional(Nullable(TlsSchema)),
  signature: Type.Optional(Nullable(SignatureSchema)),
  retry: Type.Optional(Nullable(RetrySchema)),
  breaker: Type.Optional(Nullable(BreakerSchema)),
  timeout_ms: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1000,
        maximum: 30_000,
        description: 'The deadline of the whole request, to the last byte of the answer.',
      }),
    ),
  ),
  max_in_flight: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: 'The maximum number of requests at the same time.',
      }),
    ),
  ),
  adaptive: Type.Optional(
    Nullable(
      Type.Enum(['on', 'off'], {
        description:
          '`on` (default): while it is consistently slow, it gets fewer requests at a time, and if requests also time out, a shorter deadline.',
      }),
    ),
  ),
  rate_limit: Type.Optional(Nullable(RateLimitSchema)),
  region: Type.Optional(
    Nullable(
      Type.String({
        pattern: REGION_NAME.source,
        description:
          'The region whose workers send to it: one that a worker was started with (`posthorn serve --region eu`). Default: the default region.',
        ...withMessage(REGION_NAME_RULE),
      }),
    ),
  ),
  ordering: Type.Optional(
    Nullable(
      Type.Enum(['none', 'fifo'], {
        description:
          '`fifo`: in the order of acceptance, one at a time. A retry holds the others back, and `deliver_at` of an event has no effect.',
      }),
    ),
  ),
  fifo_on_dead: Type.Optional(
    Nullable(
      Type.Enum(['skip', 'block'], {
        description:
          'With `fifo`: continue after a dead delivery, or wait until it is replayed or discarded.',
      }),
    ),
  ),
  follow_redirects: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 3,
        description: 'How many redirects to follow, 307 and 308 only.',
      }),
    ),
  ),
  challenge: Type.Optional(
    Nullable(
      Type.Enum([...challenges], {
        description: 'How the receiver proves its consent before the endpoint is created or its URL changed.',
      }),
    ),
  ),
  operator: Type.Optional(
    Nullable(
      Type.Boolean({
        description:
          'True: it gets the operational events of all tenants that it subscribes to. Only admin keys may set it, and only on endpoints of the operator tenant.',
      }),
    ),
  ),
  batch: Type.Optional(Nullable(BatchSchema)),
  debounce: Type.Optional(Nullable(DebounceSchema)),
};

export const NewEndpoint = Type.Object(
  {
    ...settingsSchema,
    url: Url,
    tenant: Type.Optional(
      Type.String({
        pattern: TENANT_ID.source,
        description: 'The tenant of the endpoint. Default: the tenant of the key, otherwise `default`.',
        ...withMessage(TENANT_ID_RULE),
      }),
    ),
    secret: Type.Optional(Secret('`whsec_` followed by 24 to 64 bytes in base64. Default: a random one.')),
  },
  {
    additionalProperties: false,
    ...withLaterChecks(findLaterErrors),
    title: 'NewEndpoint',
    examples: [
      {
        url: 'https://example.com/hooks',
        tenant: 'acme',
        description: 'Orders to the warehouse',
        events: ['order.*'],
        metadata: { team: 'logistics' },
      },
    ],
  },
);
export type NewEndpoint = Static<typeof NewEndpoint>;

/** The fields that GET shows and a PATCH cannot change. */
const readOnly = (description: string) => Type.Optional(Type.Unknown({ readOnly: true, description }));
const AS_SHOWN = 'Read-only. May be sent with the value that it has.';
const IGNORED = 'Read-only. Ignored if it is sent.';

const patchFields = {
  ...settingsSchema,
  id: readOnly(AS_SHOWN),
  tenant: readOnly(AS_SHOWN),
  disabled_reason: readOnly(AS_SHOWN),
  created_at: readOnly(AS_SHOWN),
  updated_at: readOnly(IGNORED),
  health: readOnly(IGNORED),
  public_key: readOnly(IGNORED),
  signing_secrets: readOnly(IGNORED),
  warnings: readOnly(IGNORED),
};

export const EndpointPatch = Type.Object(patchFields, {
  additionalProperties: false,
  ...withLaterChecks(findLaterErrors),
  title: 'EndpointPatch',
  examples: [
    { events: ['order.*', 'invoice.paid'], rate_limit: { per_second: 50 }, retry: { preset: 'fast' } },
  ],
});
export type EndpointPatch = Static<typeof EndpointPatch>;
