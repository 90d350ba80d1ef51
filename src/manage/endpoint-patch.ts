/** From what a caller sent to what is stored: merge patch, and the checks that a schema cannot express. */

import type { ApiContext } from '../api/dependencies.ts';
import { REDACTED } from '../api/endpoints/auth-schema.ts';
import type { EndpointPatch } from '../api/endpoints/schema.ts';
import { checkUrl, type EgressPolicy, isReservedHeader, isSendableHeader } from '../deliver/index.ts';
import { type EndpointConfig, type RetryConfig, resolveRetry } from '../domain/endpoint-config.ts';
import { isEventPattern } from '../domain/event.ts';
import { parseFilter } from '../domain/filter-syntax.ts';
import { repeatedHeader } from '../domain/header-names.ts';
import { type FieldError, invalidFields, Problem } from '../domain/problem.ts';
import { totalDelaySeconds } from '../domain/retry.ts';
import type { EndpointView } from '../postgres/queries/endpoints.ts';
import { checkCombination, checkCredentials, patchCredentials } from './endpoint-credentials.ts';

/** The settings that live in `config`; the others have columns of their own. */
const CONFIG_FIELDS = [
  'events',
  'channels',
  'filter',
  'api_version',
  'payload',
  'signature',
  'retry',
  'timeout_ms',
  'max_in_flight',
  'rate_limit',
  'ordering',
  'fifo_on_dead',
  'follow_redirects',
  'challenge',
] as const satisfies readonly (keyof EndpointConfig)[];

export type Editable = Pick<
  EndpointView,
  'url' | 'description' | 'config' | 'metadata' | 'enabled' | 'disabled_reason' | 'paused'
>;

export function applyPatch(
  before: Editable,
  patch: EndpointPatch,
  { egress, clock }: Pick<ApiContext, 'egress' | 'clock'>,
): Editable {
  const enabled = patch.enabled === undefined ? before.enabled : (patch.enabled ?? true);
  const after: Editable = {
    url: patch.url === undefined ? before.url : checkedUrl(patch.url, egress),
    description: patch.description === undefined ? before.description : (patch.description ?? ''),
    config: patchConfig(before.config, patch),
    metadata: patch.metadata === undefined ? before.metadata : mergeObjects(before.metadata, patch.metadata),
    enabled,
    disabled_reason: enabled ? null : (before.disabled_reason ?? 'manual'),
    paused: patch.paused === undefined ? before.paused : (patch.paused ?? false),
  };
  const errors = [
    ...checkConfig(after.config),
    ...checkHeaderNames(patch.headers ?? {}),
    ...checkCredentials(after.config, patch, egress, clock.now()),
    ...checkCombination(after.url, after.config),
    ...checkSizes(after),
  ];
  if (errors.length > 0) throw invalidFields(errors);
  return after;
}

export function checkedUrl(url: string, egress: EgressPolicy): string {
  const checked = checkUrl(url, egress);
  if (checked.ok) return checked.url;
  throw new Problem(checked.code, `url: ${checked.message}`, {
    errors: [{ path: 'url', message: checked.message }],
  });
}

function patchConfig(before: EndpointConfig, patch: EndpointPatch): EndpointConfig {
  const config: Record<string, unknown> = { ...before };
  for (const field of CONFIG_FIELDS) {
    const value = patch[field];
    if (value === null) delete config[field];
    else if (value !== undefined) config[field] = value;
  }
  // Null is a value here: no breaker at all.
  if (patch.breaker !== undefined) config.breaker = patch.breaker;
  if (patch.headers !== undefined) patchHeaders(config as EndpointConfig, patch.headers);
  patchCredentials(config as EndpointConfig, patch);
  return config as EndpointConfig;
}

/** What is sealed is shown as redacted. Sent back, that leaves the header as it is. */
export function shownHeaders({ headers, sealed_headers }: EndpointConfig): Record<string, string> {
  return {
    ...headers,
    ...Object.fromEntries(Object.keys(sealed_headers ?? {}).map((name) => [name, REDACTED])),
  };
}

/**
 * New values are in `headers` until they are sealed. Names of headers are the same in any case: what is given takes the
 * place of the stored one, however that is spelled.
 */
function patchHeaders(config: EndpointConfig, patch: Record<string, string | null> | null): void {
  const sealed = patch === null ? {} : { ...config.sealed_headers };
  const headers = patch === null ? {} : { ...config.headers };
  for (const [name, value] of Object.entries(patch ?? {})) {
    if (value === REDACTED && namesLike(sealed, name).length > 0) continue;
    for (const stored of namesLike(sealed, name)) delete sealed[stored];
    for (const stored of namesLike(headers, name))
      if (stored !== name || value === null) delete headers[stored];
    if (value !== null) headers[name] = value;
  }
  delete config.headers;
  delete config.sealed_headers;
  if (Object.keys(headers).length > 0) config.headers = headers;
  if (Object.keys(sealed).length > 0) config.sealed_headers = sealed;
}

const namesLike = (headers: object, name: string): string[] =>
  Object.keys(headers).filter((other) => other.toLowerCase() === name.toLowerCase());

/** JSON merge patch of one level: null takes an entry away, null in all takes everything away. */
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
  ];
}

function checkEvents(events: readonly string[]): FieldError[] {
  return events.flatMap((pattern, index) =>
    isEventPattern(pattern)
      ? []
      : [{ path: `events[${index}]`, message: 'must be "*", an event type, or a prefix such as "order.*"' }],
  );
}

function checkFilter(filter: EndpointConfig['filter']): readonly FieldError[] {
  const parsed = filter === undefined ? null : parseFilter(filter);
  return parsed === null || parsed.ok ? [] : parsed.errors;
}

function checkHeaders(headers: Record<string, string>): FieldError[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (value === REDACTED)
      return [{ path: `headers.${name}`, message: 'is not known: give the value itself' }];
    if (isReservedHeader(name))
      return [{ path: `headers.${name}`, message: 'is reserved and cannot be set' }];
    return isSendableHeader(name, value)
      ? []
      : [{ path: `headers.${name}`, message: 'is not a valid header' }];
  });
}

function checkHeaderNames(given: Record<string, unknown>): FieldError[] {
  const repeated = repeatedHeader(Object.keys(given));
  return repeated === null ? [] : [repeated];
}

const SIGNATURE_HEADERS = [
  'webhook-signature',
  'x-webhook-signature',
  'stripe-signature',
  'x-hub-signature-256',
];

/** The header that carries the signature is a header like others: it must not frame the message or name the host. */
function checkSignature(signature: EndpointConfig['signature']): FieldError[] {
  if (signature === undefined || typeof signature === 'string') return [];
  const { header, prefix } = signature;
  const errors: FieldError[] = [];
  if (header != null && !SIGNATURE_HEADERS.includes(header.toLowerCase()) && !isSendableHeader(header, ''))
    errors.push({ path: 'signature.header', message: 'is reserved or not a valid header' });
  if (prefix != null && !isSendableHeader('x', prefix))
    errors.push({ path: 'signature.prefix', message: 'cannot be sent in a header' });
  return errors;
}

const MAX_METADATA_BYTES = 16 * 1024;
const MAX_HEADERS = 50;

/** They are part of every list, and of the memory of every process. */
function checkSizes({ metadata, config }: Editable): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES)
    errors.push({ path: 'metadata', message: `must have at most ${MAX_METADATA_BYTES} bytes` });
  if (Object.keys(shownHeaders(config)).length > MAX_HEADERS)
    errors.push({ path: 'headers', message: `must be at most ${MAX_HEADERS}` });
  return errors;
}

function checkRetry(retry: RetryConfig): FieldError[] {
  const kinds = (['preset', 'schedule', 'base'] as const).filter((field) => retry[field] !== undefined);
  if (kinds.length > 1) return [{ path: 'retry', message: `has ${kinds.join(' and ')}: choose one` }];
  if (retry.base === undefined) {
    const stray = (['factor', 'max', 'attempts'] as const).filter((field) => retry[field] !== undefined);
    if (stray.length > 0)
      return [{ path: `retry.${stray[0]}`, message: 'goes with base (an exponential policy) only' }];
  }
  const policy = resolveRetry(retry);
  const total = totalDelaySeconds(policy);
  if (retry.max_age_seconds !== undefined && total > retry.max_age_seconds) {
    return [
      {
        path: 'retry.max_age_seconds',
        message: `is shorter than the schedule, which takes ${Math.round(total)} seconds`,
      },
    ];
  }
  return [];
}
