/** An endpoint as the fields of a form, and the way back: only what was changed is sent. */
import type { Endpoint } from '../api/types.ts';

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

/** Which fields go with which kind of authentication. */
export const AUTH_FIELDS = {
  none: [],
  basic: ['username', 'password'],
  bearer: ['token'],
  oauth2: ['token_url', 'client_id', 'client_secret', 'scope'],
} as const satisfies Record<AuthDraft['type'], readonly (keyof AuthDraft)[]>;

export interface Draft {
  url: string;
  description: string;
  tenant: string;
  events: string;
  channels: string;
  payload: string;
  api_version: string;
  timeout_ms: string;
  max_in_flight: string;
  rate_per_second: string;
  rate_burst: string;
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

const list = (values: readonly (string | number)[] | undefined): string => (values ?? []).join(', ');
const text = (value: unknown): string => (value === null || value === undefined ? '' : String(value));
const json = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2));

export function toDraft(endpoint: Partial<Endpoint>): Draft {
  const { retry = {}, breaker, signature = 'standard', rate_limit: rate } = endpoint;
  const profile = typeof signature === 'string' ? { profile: signature } : signature;
  return {
    url: endpoint.url ?? '',
    description: endpoint.description ?? '',
    tenant: endpoint.tenant ?? '',
    events: list(endpoint.events ?? ['*']),
    channels: list(endpoint.channels),
    payload: endpoint.payload ?? 'full',
    api_version: text(endpoint.api_version),
    timeout_ms: text(endpoint.timeout_ms),
    max_in_flight: text(endpoint.max_in_flight),
    rate_per_second: text(rate?.per_second),
    rate_burst: text(rate?.burst),
    ordering: endpoint.ordering ?? 'none',
    fifo_on_dead: endpoint.fifo_on_dead ?? 'skip',
    follow_redirects: text(endpoint.follow_redirects ?? 0),
    retry_kind:
      retry.base !== undefined ? 'exponential' : retry.schedule !== undefined ? 'schedule' : 'preset',
    preset: retry.preset ?? 'default',
    schedule: list(retry.schedule),
    base: text(retry.base),
    factor: text(retry.factor),
    max: text(retry.max),
    attempts: text(retry.attempts),
    jitter: text(retry.jitter),
    max_age_seconds: text(retry.max_age_seconds),
    permanent: list(retry.permanent),
    transient: list(retry.transient),
    breaker_on: breaker !== null,
    consecutive: text(breaker?.consecutive),
    failure_rate: text(breaker?.failure_rate),
    min_requests: text(breaker?.min_requests),
    window_seconds: text(breaker?.window_seconds),
    cooldown_seconds: text(breaker?.cooldown_seconds),
    max_cooldown_seconds: text(breaker?.max_cooldown_seconds),
    signature: profile.profile,
    signature_header: text('header' in profile ? profile.header : ''),
    signature_prefix: text('prefix' in profile ? profile.prefix : ''),
    headers: Object.entries(endpoint.headers ?? {}),
    challenge: text(endpoint.challenge),
    auth: toAuthDraft(endpoint.auth ?? {}),
    tls: { cert: text(endpoint.tls?.cert), key: text(endpoint.tls?.key), ca: text(endpoint.tls?.ca) },
    metadata: Object.keys(endpoint.metadata ?? {}).length === 0 ? '' : json(endpoint.metadata),
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
  const fields = Object.fromEntries(names.map((name) => [name, text(auth[name])])) as Omit<AuthDraft, 'type'>;
  return { ...fields, type: (auth.type as AuthDraft['type'] | undefined) ?? 'none' };
}

export class DraftError extends Error {
  readonly path: string;
  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

const words = (value: string): string[] => value.split(/[\s,]+/).filter((word) => word !== '');
/** What is not a number goes to the API as it is: it says best what is wrong with it. */
const numberOf = (value: string): number | string =>
  value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
const given = (entries: Record<string, string>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(entries)
      .filter(([, value]) => value.trim() !== '')
      .map(([name, value]) => [name, numberOf(value)]),
  );

function jsonOf(path: string, value: string): unknown {
  if (value.trim() === '') return null;
  try {
    return JSON.parse(value);
  } catch {
    throw new DraftError(path, 'is not valid JSON');
  }
}

/** The settings that a draft stands for. Null: the default. */
export function toSettings(draft: Draft): Record<string, unknown> {
  const orNull = (value: string): unknown => (value.trim() === '' ? null : value.trim());
  return {
    url: draft.url.trim(),
    description: draft.description,
    events: words(draft.events).length === 0 ? null : words(draft.events),
    channels: words(draft.channels),
    payload: draft.payload,
    api_version: orNull(draft.api_version),
    timeout_ms: draft.timeout_ms === '' ? null : numberOf(draft.timeout_ms),
    max_in_flight: draft.max_in_flight === '' ? null : numberOf(draft.max_in_flight),
    rate_limit:
      draft.rate_per_second === ''
        ? null
        : given({ per_second: draft.rate_per_second, burst: draft.rate_burst }),
    ordering: draft.ordering,
    fifo_on_dead: draft.fifo_on_dead,
    follow_redirects: numberOf(draft.follow_redirects),
    retry: retryOf(draft),
    breaker: draft.breaker_on
      ? given({
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
    challenge: orNull(draft.challenge),
    auth: authOf(draft.auth),
    tls: Object.values(draft.tls).every((value) => value.trim() === '')
      ? null
      : Object.fromEntries(Object.entries(draft.tls).filter(([, value]) => value.trim() !== '')),
    metadata: jsonOf('metadata', draft.metadata) ?? {},
  };
}

function authOf(auth: AuthDraft): Record<string, string> | null {
  if (auth.type === 'none') return null;
  const given = AUTH_FIELDS[auth.type].filter((name) => auth[name] !== '');
  return { type: auth.type, ...Object.fromEntries(given.map((name) => [name, auth[name]])) };
}

function retryOf(draft: Draft): Record<string, unknown> {
  const rules = {
    ...(draft.jitter !== '' && { jitter: draft.jitter }),
    ...given({ max_age_seconds: draft.max_age_seconds }),
    ...(draft.permanent.trim() !== '' && { permanent: words(draft.permanent).map(numberOf) }),
    ...(draft.transient.trim() !== '' && { transient: words(draft.transient).map(numberOf) }),
  };
  if (draft.retry_kind === 'preset') return { preset: draft.preset, ...rules };
  if (draft.retry_kind === 'schedule') return { schedule: words(draft.schedule).map(numberOf), ...rules };
  return {
    ...given({ base: draft.base, factor: draft.factor, max: draft.max, attempts: draft.attempts }),
    ...rules,
  };
}

/** From one draft to another, as a merge patch. Headers and metadata that are gone are set to null. */
export function toPatch(before: Draft, after: Draft): Record<string, unknown> {
  const [old, wanted] = [toSettings(before), toSettings(after)];
  const patch: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(wanted)) {
    if (JSON.stringify(old[name]) === JSON.stringify(value)) continue;
    patch[name] = name === 'headers' || name === 'metadata' ? mergePatch(old[name], value) : value;
  }
  return patch;
}

function mergePatch(before: unknown, after: unknown): Record<string, unknown> {
  const gone = Object.keys(before as object).filter((name) => !Object.hasOwn(after as object, name));
  return { ...(after as object), ...Object.fromEntries(gone.map((name) => [name, null])) };
}
