/** Applies a merge patch to an endpoint's settings, and checks what a JSON schema cannot express. */
import {
  checkUrl,
  type EgressPolicy,
  isReservedHeader,
  isSendableHeader,
  SIGNATURE_SUFFIXES,
  type UrlCheck,
} from '../deliver/index.ts';
import type { Clock } from '../domain/clock.ts';
import { DEBOUNCE_KEY, DEBOUNCE_KEY_RULE } from '../domain/debounce.ts';
import type { SignatureProfile } from '../domain/endpoint.ts';
import type { AuthConfig, TlsConfig } from '../domain/endpoint-auth.ts';
import {
  type BreakerConfig,
  type EndpointConfig,
  type RetryConfig,
  resolveRetry,
} from '../domain/endpoint-config.ts';
import { EVENT_PATTERN_RULE, isEventPattern } from '../domain/event.ts';
import { parseFilter } from '../domain/filter-syntax.ts';
import { findRepeatedHeader } from '../domain/header-names.ts';
import { type FieldError, invalidField } from '../domain/problem.ts';
import { totalDelaySeconds } from '../domain/retry.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import {
  checkCombination,
  checkCredentials,
  findAuthFieldErrors,
  patchCredentials,
} from './endpoint-credentials.ts';
import { checkMetadataSize } from './metadata.ts';
import { REDACTED } from './redacted.ts';
import { problemOf, type SettingError, urlErrors } from './setting-errors.ts';
import { isWholeMilliseconds, WHOLE_MILLISECONDS_RULE } from './whole-milliseconds.ts';

/** The settings that are stored in `config` and replaced whole; the others have columns or rules of their own. */
const CONFIG_FIELDS = [
  'events',
  'channels',
  'filter',
  'api_version',
  'payload',
  'plain_headers',
  'signature',
  'retry',
  'timeout_ms',
  'max_in_flight',
  'adaptive',
  'rate_limit',
  'region',
  'ordering',
  'fifo_on_dead',
  'follow_redirects',
  'batch',
  'debounce',
  'challenge',
  'operator',
] as const satisfies readonly (keyof EndpointConfig)[];

type Nullable<T> = { readonly [K in keyof T]?: T[K] | null };
type ConfigPatch = Nullable<Pick<EndpointConfig, Exclude<(typeof CONFIG_FIELDS)[number], 'signature'>>>;

/** What a caller may change. Absent: it stays as it is. Null: back to the default. */
export interface EndpointPatch extends ConfigPatch {
  readonly url?: string;
  readonly description?: string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly enabled?: boolean | null;
  readonly paused?: boolean | null;
  /** By name. Null removes a header. */
  readonly headers?: Record<string, string | null> | null;
  readonly auth?: Nullable<AuthConfig> | null;
  readonly tls?: Nullable<TlsConfig> | null;
  readonly signature?:
    | SignatureProfile
    | { readonly profile: SignatureProfile; readonly header?: string; readonly prefix?: string }
    | null;
  /** Null: no breaker. `{}`: the default one. */
  readonly breaker?: BreakerConfig | null;
}

/** The part of an endpoint that a caller may change. */
export type EditableEndpoint = Pick<
  EndpointView,
  'url' | 'description' | 'config' | 'metadata' | 'enabled' | 'disabled_reason' | 'paused'
>;

/**
 * Returns the patched endpoint, with new secrets still in plain text. Throws a problem that names all errors: `invalid`,
 * `url_invalid` or `url_forbidden`.
 */
export function applyPatch(
  before: EditableEndpoint,
  patch: EndpointPatch,
  { egress, clock }: { readonly egress: EgressPolicy; readonly clock: Clock },
): EditableEndpoint {
  refuseManyHeaders(patch.headers);
  const enabled = patch.enabled === undefined ? before.enabled : (patch.enabled ?? true);
  const checked: UrlCheck =
    patch.url === undefined ? { ok: true, url: before.url } : checkUrl(patch.url, egress);
  const after: EditableEndpoint = {
    url: checked.ok ? checked.url : before.url,
    description: patch.description === undefined ? before.description : (patch.description ?? ''),
    config: patchConfig(before.config, patch),
    metadata: patch.metadata === undefined ? before.metadata : mergeObjects(before.metadata, patch.metadata),
    enabled,
    disabled_reason: enabled ? null : (before.disabled_reason ?? 'manual'),
    paused: patch.paused === undefined ? before.paused : (patch.paused ?? false),
  };
  const errors: SettingError[] = [
    ...urlErrors('url', checked),
    ...checkConfig(after.config),
    ...checkHeaderNames(patch.headers ?? {}),
    ...checkDurations(patch),
    ...checkCredentials(after.config, patch, egress, clock.now()),
    ...checkCombination(checked.ok ? checked.url : null, after.config),
    ...checkSizes(after),
  ];
  if (errors.length > 0) throw problemOf(errors);
  return after;
}

/**
 * Returns what is wrong with settings, without those of a stored endpoint. For requests that fail for other reasons, so that
 * one answer names all errors: `given` has only fields of the right type.
 */
export function findSettingErrors(given: Readonly<Record<string, unknown>>): FieldError[] {
  const patch = given as EndpointPatch;
  // `[redacted]` stands for a stored value, which is unknown here.
  const headers = Object.entries(patch.headers ?? {}).filter(([, value]) => value !== REDACTED);
  const config = patchConfig({}, { ...patch, headers: Object.fromEntries(headers) });
  return [
    ...checkConfig(config),
    ...checkHeaderNames(patch.headers ?? {}),
    ...checkDurations(patch),
    ...(config.auth === undefined ? [] : findAuthFieldErrors(config.auth, false)),
    ...checkSizes({ metadata: mergeObjects({}, patch.metadata ?? {}), config }),
  ];
}

/** Returns the normalized URL. Throws `url_invalid` or `url_forbidden`. */
export function normalizeUrl(url: string, egress: EgressPolicy): string {
  const checked = checkUrl(url, egress);
  if (checked.ok) return checked.url;
  throw problemOf(urlErrors('url', checked));
}

function patchConfig(before: EndpointConfig, patch: EndpointPatch): EndpointConfig {
  const config: Record<string, unknown> = { ...before };
  for (const field of CONFIG_FIELDS) {
    const value = patch[field];
    if (value === null) delete config[field];
    else if (value !== undefined) config[field] = value;
  }
  // Null is a value here: no breaker.
  if (patch.breaker !== undefined) config.breaker = patch.breaker;
  if (patch.headers !== undefined) patchHeaders(config as EndpointConfig, patch.headers);
  patchCredentials(config as EndpointConfig, patch);
  return config as EndpointConfig;
}

/**
 * Merges headers into the configuration. New values stay in `headers` until they are sealed. Names are compared without
 * case: `X-Team` replaces `x-team`. A value of `[redacted]` keeps the sealed one.
 */
function patchHeaders(config: EndpointConfig, patch: Record<string, string | null> | null): void {
  const sealed = patch === null ? {} : { ...config.sealed_headers };
  const headers = patch === null ? {} : { ...config.headers };
  const sealedNames = namesByLowerCase(sealed);
  const headerNames = namesByLowerCase(headers);
  for (const [name, value] of Object.entries(patch ?? {})) {
    const lower = name.toLowerCase();
    const stored = sealedNames.get(lower) ?? [];
    if (value === REDACTED && stored.length > 0) continue;
    for (const other of stored) delete sealed[other];
    sealedNames.delete(lower);
    for (const other of headerNames.get(lower) ?? [])
      if (other !== name || value === null) delete headers[other];
    headerNames.set(lower, value === null ? [] : [name]);
    if (value !== null) headers[name] = value;
  }
  delete config.headers;
  delete config.sealed_headers;
  if (Object.keys(headers).length > 0) config.headers = headers;
  if (Object.keys(sealed).length > 0) config.sealed_headers = sealed;
}

/** Several stored names may differ only in case. */
const namesByLowerCase = (headers: object): Map<string, string[]> =>
  Map.groupBy(Object.keys(headers), (name) => name.toLowerCase());

/** A JSON merge patch of one level: a null entry removes that entry, a null patch removes all. */
function mergeObjects<T>(
  before: Record<string, T>,
  patch: Record<string, T | null> | null,
): Record<string, T> {
  if (patch === null) return {};
  const merged = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = value;
  }
  return merged;
}

function checkConfig(config: EndpointConfig): FieldError[] {
  return [
    ...checkEvents(config.events ?? []),
    ...checkFilter(config.filter),
    ...checkHeaders(config.headers ?? {}),
    ...checkSignature(config.signature),
    ...checkRetry(config.retry ?? {}),
    ...checkDebounce(config),
    ...checkBatch(config),
  ];
}

function checkBatch({ batch, api_version }: EndpointConfig): FieldError[] {
  if (batch === undefined || api_version === undefined) return [];
  return [{ path: 'batch', message: 'cannot be combined with api_version: send api_version: null' }];
}

/** Returns what is wrong with `debounce`, alone and together with the other settings. */
export function checkDebounce({
  debounce,
  batch,
  ordering,
}: Pick<EndpointConfig, 'debounce' | 'batch' | 'ordering'>): FieldError[] {
  if (debounce === undefined) return [];
  const errors: FieldError[] = [];
  if (!DEBOUNCE_KEY.test(debounce.key)) errors.push({ path: 'debounce.key', message: DEBOUNCE_KEY_RULE });
  if (batch !== undefined) errors.push({ path: 'debounce', message: 'cannot be combined with batch' });
  if (ordering === 'fifo')
    errors.push({ path: 'debounce', message: 'cannot be combined with ordering "fifo"' });
  if ((debounce.max_wait_ms ?? debounce.window_ms) < debounce.window_ms)
    errors.push({ path: 'debounce.max_wait_ms', message: 'must not be less than window_ms' });
  return errors;
}

function checkEvents(events: readonly string[]): FieldError[] {
  return events.flatMap((pattern, index) =>
    isEventPattern(pattern) ? [] : [{ path: `events[${index}]`, message: EVENT_PATTERN_RULE }],
  );
}

function checkFilter(filter: EndpointConfig['filter']): readonly FieldError[] {
  const parsed = filter === undefined ? null : parseFilter(filter);
  return parsed === null || parsed.ok ? [] : parsed.errors;
}

function checkHeaders(headers: Record<string, string>): FieldError[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (value === REDACTED)
      return [
        {
          path: `headers.${name}`,
          message: 'has no stored value: send the value itself instead of "[redacted]"',
        },
      ];
    if (isReservedHeader(name))
      return [{ path: `headers.${name}`, message: 'is reserved and cannot be set' }];
    return isSendableHeader(name, value)
      ? []
      : [{ path: `headers.${name}`, message: 'is not a valid header name or value' }];
  });
}

const MAX_HEADER_NAME = 128;

function checkHeaderNames(given: Record<string, unknown>): FieldError[] {
  // Check only names in the patch: a stored name must not fail other changes, and can be removed.
  const long = Object.keys(given).find((name) => given[name] !== null && name.length > MAX_HEADER_NAME);
  if (long !== undefined)
    return [
      {
        path: `headers.${long.slice(0, MAX_HEADER_NAME)}…`,
        message: `must have a name of at most ${MAX_HEADER_NAME} characters`,
      },
    ];
  const repeated = findRepeatedHeader(Object.keys(given));
  return repeated === null ? [] : [repeated];
}

const SIGNATURE_HEADERS = [
  'webhook-signature',
  'x-webhook-signature',
  'stripe-signature',
  'x-hub-signature-256',
];

/** A custom signature header must not be one that frames the message or names the host. */
function checkSignature(signature: EndpointConfig['signature']): FieldError[] {
  if (signature === undefined || typeof signature === 'string') return [];
  const { header, prefix } = signature;
  const errors: FieldError[] = [];
  // During a change of secrets or keys, further signatures are sent under names with these endings.
  const names = SIGNATURE_SUFFIXES.map((suffix) => `${header}${suffix}`);
  const isKnown = SIGNATURE_HEADERS.includes(header?.toLowerCase() ?? '');
  if (header != null && !isKnown && !names.every((name) => isSendableHeader(name, '')))
    errors.push({ path: 'signature.header', message: 'is reserved, or is not a valid header name' });
  if (prefix != null && !isSendableHeader('x', prefix))
    errors.push({ path: 'signature.prefix', message: 'must consist of characters that a header can carry' });
  return errors;
}

const MAX_HEADERS = 50;
/** A patch may remove all stored headers and add as many others. */
export const MAX_PATCHED_HEADERS = 2 * MAX_HEADERS;

/** Throws before the names are merged and checked one by one. */
function refuseManyHeaders(headers: EndpointPatch['headers']): void {
  const count = Object.keys(headers ?? {}).length;
  if (count > MAX_PATCHED_HEADERS)
    throw invalidField('headers', `must have at most ${MAX_PATCHED_HEADERS} entries, has ${count}`);
}

function checkSizes({ metadata, config }: Pick<EditableEndpoint, 'metadata' | 'config'>): FieldError[] {
  const errors: FieldError[] = [];
  const tooLarge = checkMetadataSize(metadata);
  if (tooLarge !== null) errors.push(tooLarge);
  if (Object.keys({ ...config.headers, ...config.sealed_headers }).length > MAX_HEADERS)
    errors.push({ path: 'headers', message: `must have at most ${MAX_HEADERS} entries` });
  return errors;
}

/** Durations are stored in whole milliseconds. Checks only durations in the patch: a stored one must not fail other changes. */
function checkDurations({ breaker, retry }: EndpointPatch): FieldError[] {
  const given: Record<string, number | undefined> = {
    'breaker.window_seconds': breaker?.window_seconds,
    'breaker.cooldown_seconds': breaker?.cooldown_seconds,
    'breaker.max_cooldown_seconds': breaker?.max_cooldown_seconds,
    'retry.base': retry?.base,
    'retry.max': retry?.max,
    'retry.max_age_seconds': retry?.max_age_seconds,
    ...Object.fromEntries((retry?.schedule ?? []).map((delay, index) => [`retry.schedule[${index}]`, delay])),
  };
  return Object.entries(given)
    .filter(([, seconds]) => seconds !== undefined && !isWholeMilliseconds(seconds))
    .map(([path]) => ({ path, message: WHOLE_MILLISECONDS_RULE }));
}

function checkRetry(retry: RetryConfig): FieldError[] {
  const kinds = (['preset', 'schedule', 'base'] as const).filter((field) => retry[field] !== undefined);
  if (kinds.length > 1) return [{ path: 'retry', message: `has ${kinds.join(' and ')}: choose one of them` }];
  if (retry.base === undefined) {
    const misplaced = (['factor', 'max', 'attempts'] as const).filter((field) => retry[field] !== undefined);
    if (misplaced.length > 0)
      return [
        {
          path: `retry.${misplaced[0]}`,
          message: 'is only allowed together with "base" (an exponential policy)',
        },
      ];
  }
  const policy = resolveRetry(retry);
  const total = totalDelaySeconds(policy);
  if (retry.max_age_seconds !== undefined && total > retry.max_age_seconds) {
    return [
      {
        path: 'retry.max_age_seconds',
        message: `must be at least ${Math.round(total)}, the seconds that the schedule takes`,
      },
    ];
  }
  return [];
}
