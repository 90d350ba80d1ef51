/** Converts an endpoint to the fields of a form (a draft), and drafts back to the body of an API request. */
import type { Endpoint, ExponentialRetry, ScheduledRetry } from '@posthorn/client';
import type { FieldError } from '../api/client.ts';
import { pickNumbers, toNumber, toText } from './draft-values.ts';
import {
  findShapingConflicts,
  type ShapingDraft,
  toBatch,
  toDebounce,
  toShapingDraft,
} from './endpoint-shaping-draft.ts';

export interface AuthDraft {
  type: 'none' | 'basic' | 'bearer' | 'oauth2';
  username: string;
  password: string;
  token: string;
  token_url: string;
  client_id: string;
  client_secret: string;
  scope: string;
}

export interface TlsDraft {
  cert: string;
  key: string;
  ca: string;
}

/** The fields of each kind of authentication. */
export const AUTH_FIELDS = {
  none: [],
  basic: ['username', 'password'],
  bearer: ['token'],
  oauth2: ['token_url', 'client_id', 'client_secret', 'scope'],
} as const satisfies Record<AuthDraft['type'], readonly (keyof AuthDraft)[]>;

export interface Draft extends ShapingDraft {
  url: string;
  description: string;
  tenant: string;
  events: string;
  /** JSON, or ''. */
  filter: string;
  channels: string;
  payload: string;
  api_version: string;
  timeout_ms: string;
  max_in_flight: string;
  adaptive: string;
  rate_per_second: string;
  rate_burst: string;
  region: string;
  ordering: string;
  fifo_on_dead: string;
  follow_redirects: string;
  retry_kind: 'preset' | 'schedule' | 'exponential';
  preset: string;
  schedule: string;
  base: string;
  factor: string;
  max: string;
  attempts: string;
  jitter: string;
  max_age_seconds: string;
  permanent: string;
  transient: string;
  breaker_on: boolean;
  consecutive: string;
  failure_rate: string;
  min_requests: string;
  window_seconds: string;
  cooldown_seconds: string;
  max_cooldown_seconds: string;
  signature: string;
  signature_header: string;
  signature_prefix: string;
  headers: readonly (readonly [string, string])[];
  plain_headers: string;
  challenge: string;
  auth: AuthDraft;
  tls: TlsDraft;
  metadata: string;
}

export const PRESETS = [
  ['default', 'Default: 7 attempts over 34 hours'],
  ['standard-webhooks', 'Standard Webhooks: 10 attempts over 3 days'],
  ['minute', 'Minute: 7 attempts, the first retry after a minute'],
  ['fast', 'Fast: 6 attempts over 2.5 hours'],
  ['patient', 'Patient: 6 attempts over 17 hours'],
  ['day', 'Day: 8 attempts over 14 hours'],
] as const;

const joinList = (values: readonly (string | number)[] | undefined): string => (values ?? []).join(', ');

export function toDraft(endpoint: Partial<Endpoint>): Draft {
  const { breaker, signature = 'standard', rate_limit: rate } = endpoint;
  const retry: Partial<ScheduledRetry & ExponentialRetry> = endpoint.retry ?? {};
  const profile = typeof signature === 'string' ? { profile: signature } : signature;
  return {
    url: endpoint.url ?? '',
    description: endpoint.description ?? '',
    tenant: endpoint.tenant ?? '',
    events: joinList(endpoint.events ?? ['*']),
    filter: endpoint.filter == null ? '' : JSON.stringify(endpoint.filter, null, 2),
    channels: joinList(endpoint.channels),
    payload: endpoint.payload ?? 'full',
    api_version: toText(endpoint.api_version),
    timeout_ms: toText(endpoint.timeout_ms),
    max_in_flight: toText(endpoint.max_in_flight),
    adaptive: endpoint.adaptive ?? 'on',
    rate_per_second: toText(rate?.per_second),
    rate_burst: toText(rate?.burst),
    region: toText(endpoint.region),
    ordering: endpoint.ordering ?? 'none',
    fifo_on_dead: endpoint.fifo_on_dead ?? 'skip',
    follow_redirects: toText(endpoint.follow_redirects ?? 0),
    ...toShapingDraft(endpoint),
    retry_kind:
      retry.base !== undefined ? 'exponential' : retry.schedule !== undefined ? 'schedule' : 'preset',
    preset: 'default',
    schedule: joinList(retry.schedule),
    base: toText(retry.base),
    factor: toText(retry.factor),
    max: toText(retry.max),
    attempts: toText(retry.attempts),
    jitter: toText(retry.jitter),
    max_age_seconds: toText(retry.max_age_seconds),
    permanent: joinList(retry.permanent),
    transient: joinList(retry.transient),
    breaker_on: breaker !== null,
    consecutive: toText(breaker?.consecutive),
    failure_rate: toText(breaker?.failure_rate),
    min_requests: toText(breaker?.min_requests),
    window_seconds: toText(breaker?.window_seconds),
    cooldown_seconds: toText(breaker?.cooldown_seconds),
    max_cooldown_seconds: toText(breaker?.max_cooldown_seconds),
    signature: profile.profile,
    signature_header: toText('header' in profile ? profile.header : ''),
    signature_prefix: toText('prefix' in profile ? profile.prefix : ''),
    headers: Object.entries(endpoint.headers ?? {}),
    plain_headers: joinList(endpoint.plain_headers),
    challenge: toText(endpoint.challenge),
    auth: toAuthDraft({ ...endpoint.auth }),
    tls: { cert: toText(endpoint.tls?.cert), key: toText(endpoint.tls?.key), ca: toText(endpoint.tls?.ca) },
    metadata:
      Object.keys(endpoint.metadata ?? {}).length === 0 ? '' : JSON.stringify(endpoint.metadata, null, 2),
  };
}

function toAuthDraft(auth: Record<string, unknown>): AuthDraft {
  const names = [
    'username',
    'password',
    'token',
    'token_url',
    'client_id',
    'client_secret',
    'scope',
  ] as const;
  const fields = Object.fromEntries(names.map((name) => [name, toText(auth[name])])) as Omit<
    AuthDraft,
    'type'
  >;
  return { ...fields, type: (auth.type as AuthDraft['type'] | undefined) ?? 'none' };
}

/** Fields that cannot be sent to the API. */
export class DraftError extends Error {
  readonly errors: readonly FieldError[];
  constructor(errors: readonly FieldError[]) {
    super(errors.map(({ path, message }) => `${path} ${message}`).join('; '));
    this.errors = errors;
  }
}

const splitWords = (value: string): string[] => value.split(/[\s,]+/).filter((word) => word !== '');

/** Parses the fields that contain JSON; null for an empty one. Adds an error for each that is invalid. */
function parseFields<Name extends string>(
  fields: Record<Name, string>,
  errors: FieldError[],
): Record<Name, unknown> {
  const parsed = Object.entries<string>(fields).map(([path, text]): [string, unknown] => {
    try {
      return [path, text.trim() === '' ? null : JSON.parse(text)];
    } catch {
      errors.push({ path, message: 'must be valid JSON' });
      return [path, null];
    }
  });
  return Object.fromEntries(parsed) as Record<Name, unknown>;
}

/** The API checks URLs, but a draft with other errors is not sent. Then this check names an invalid URL together with them. */
function findUrlErrors(url: string): FieldError[] {
  const isValid = URL.canParse(url.trim()) && /^https?:$/.test(new URL(url.trim()).protocol);
  const message = 'must be a complete URL, such as https://example.com/hooks';
  return isValid ? [] : [{ path: 'url', message }];
}

/**
 * Converts a draft to the settings of the API. Null means the default. Throws `DraftError` with all fields that contain
 * invalid JSON or contradict each other.
 */
export function toSettings(draft: Draft): Record<string, unknown> {
  const orNull = (value: string): unknown => (value.trim() === '' ? null : value.trim());
  const errors = findShapingConflicts(draft);
  const { filter, metadata } = parseFields({ filter: draft.filter, metadata: draft.metadata }, errors);
  if (errors.length > 0) throw new DraftError([...findUrlErrors(draft.url), ...errors]);
  return {
    url: draft.url.trim(),
    description: draft.description,
    events: splitWords(draft.events).length === 0 ? null : splitWords(draft.events),
    filter,
    channels: splitWords(draft.channels),
    payload: draft.payload,
    api_version: orNull(draft.api_version),
    timeout_ms: draft.timeout_ms === '' ? null : toNumber(draft.timeout_ms),
    max_in_flight: draft.max_in_flight === '' ? null : toNumber(draft.max_in_flight),
    adaptive: draft.adaptive,
    rate_limit:
      draft.rate_per_second === ''
        ? null
        : pickNumbers({ per_second: draft.rate_per_second, burst: draft.rate_burst }),
    region: orNull(draft.region),
    ordering: draft.ordering,
    fifo_on_dead: draft.fifo_on_dead,
    follow_redirects: toNumber(draft.follow_redirects),
    batch: toBatch(draft),
    debounce: toDebounce(draft),
    retry: toRetry(draft),
    breaker: draft.breaker_on
      ? pickNumbers({
          consecutive: draft.consecutive,
          failure_rate: draft.failure_rate,
          min_requests: draft.min_requests,
          window_seconds: draft.window_seconds,
          cooldown_seconds: draft.cooldown_seconds,
          max_cooldown_seconds: draft.max_cooldown_seconds,
        })
      : null,
    signature:
      draft.signature_header === '' && draft.signature_prefix === ''
        ? draft.signature
        : {
            profile: draft.signature,
            ...(draft.signature_header !== '' && { header: draft.signature_header }),
            ...(draft.signature_prefix !== '' && { prefix: draft.signature_prefix }),
          },
    headers: Object.fromEntries(
      draft.headers.filter(([name]) => name.trim() !== '').map(([name, value]) => [name.trim(), value]),
    ),
    plain_headers: splitWords(draft.plain_headers),
    challenge: orNull(draft.challenge),
    auth: toAuth(draft.auth),
    tls: Object.values(draft.tls).every((value) => value.trim() === '')
      ? null
      : Object.fromEntries(Object.entries(draft.tls).filter(([, value]) => value.trim() !== '')),
    metadata: metadata ?? {},
  };
}

function toAuth(auth: AuthDraft): Record<string, string> | null {
  if (auth.type === 'none') return null;
  const names = AUTH_FIELDS[auth.type].filter((name) => auth[name] !== '');
  return { type: auth.type, ...Object.fromEntries(names.map((name) => [name, auth[name]])) };
}

function toRetry(draft: Draft): Record<string, unknown> {
  const rules = {
    ...(draft.jitter !== '' && { jitter: draft.jitter }),
    ...pickNumbers({ max_age_seconds: draft.max_age_seconds }),
    ...(draft.permanent.trim() !== '' && { permanent: splitWords(draft.permanent).map(toNumber) }),
    ...(draft.transient.trim() !== '' && { transient: splitWords(draft.transient).map(toNumber) }),
  };
  if (draft.retry_kind === 'preset') return { preset: draft.preset, ...rules };
  if (draft.retry_kind === 'schedule')
    return { schedule: splitWords(draft.schedule).map(toNumber), ...rules };
  return {
    ...pickNumbers({ base: draft.base, factor: draft.factor, max: draft.max, attempts: draft.attempts }),
    ...rules,
  };
}

/** The merge patch from one draft to another. Removed headers and metadata are set to null. */
export function toPatch(before: Draft, after: Draft): Record<string, unknown> {
  const [oldSettings, newSettings] = [toSettings(before), toSettings(after)];
  const patch: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(newSettings)) {
    if (JSON.stringify(oldSettings[name]) === JSON.stringify(value)) continue;
    patch[name] = name === 'headers' || name === 'metadata' ? toMergePatch(oldSettings[name], value) : value;
  }
  return patch;
}

function toMergePatch(before: unknown, after: unknown): Record<string, unknown> {
  const removed = Object.keys(before as object).filter((name) => !Object.hasOwn(after as object, name));
  return { ...(after as object), ...Object.fromEntries(removed.map((name) => [name, null])) };
}
