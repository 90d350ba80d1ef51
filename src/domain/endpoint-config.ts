/**
 * The configuration of an endpoint as the user set it, and the endpoint with defaults filled in. Only values that the
 * user set are stored, so a new default in a later version applies to every endpoint without a value of its own.
 */
import { type BatchConfig, resolveBatch } from './batch.ts';
import { type BreakerSettings, DEFAULT_BREAKER } from './breaker.ts';
import { type DebounceConfig, resolveDebounce } from './debounce.ts';
import type { Challenge, DisabledReason, Endpoint, EndpointSecret } from './endpoint.ts';
import { type AuthConfig, resolveAuth, resolveCertificate, type TlsConfig } from './endpoint-auth.ts';
import type { Uuid } from './ids.ts';
import type { NotifierConfig } from './notices.ts';
import {
  DEFAULT_MAX_AGE_SECONDS,
  DEFAULT_PERMANENT,
  DEFAULT_TRANSIENT,
  type Jitter,
  type RetryPolicy,
  type RetryPreset,
  retryPresets,
  type StatusMatcher,
  totalDelaySeconds,
} from './retry.ts';

export interface RetryConfig {
  preset?: RetryPreset;
  schedule?: number[];
  base?: number;
  factor?: number;
  max?: number;
  attempts?: number;
  jitter?: Jitter;
  max_age_seconds?: number;
  permanent?: StatusMatcher[];
  transient?: StatusMatcher[];
}

export interface BreakerConfig {
  consecutive?: number;
  failure_rate?: number;
  min_requests?: number;
  window_seconds?: number;
  cooldown_seconds?: number;
  max_cooldown_seconds?: number;
}

/** An encrypted secret. */
export interface SealedValue {
  readonly key_id: string;
  /** base64 */
  readonly ciphertext: string;
}

export interface EndpointConfig {
  events?: readonly string[];
  channels?: string[];
  filter?: Record<string, unknown>;
  api_version?: string;
  payload?: 'full' | 'thin';
  /** In plain text: only in memory, and in rows of earlier versions until upkeep seals them. */
  headers?: Record<string, string>;
  /** Names of headers whose values are shown to everybody who may see the endpoint. */
  plain_headers?: string[];
  sealed_headers?: Record<string, SealedValue>;
  auth?: AuthConfig;
  tls?: TlsConfig;
  /** The secrets of `auth` and `tls`, and the URL of a notifier. */
  sealed_settings?: { auth?: SealedValue; tls?: SealedValue; url?: SealedValue };
  signature?: Endpoint['signature'];
  retry?: RetryConfig;
  /** Null: no breaker. Absent: the default breaker. */
  breaker?: BreakerConfig | null;
  timeout_ms?: number;
  max_in_flight?: number;
  adaptive?: 'on' | 'off';
  rate_limit?: { per_second: number; burst?: number };
  region?: string;
  ordering?: 'none' | 'fifo';
  fifo_on_dead?: 'skip' | 'block';
  follow_redirects?: number;
  batch?: BatchConfig;
  debounce?: DebounceConfig;
  challenge?: Challenge;
  operator?: boolean;
  /** Set for a notifier. The API does not show notifiers as endpoints. */
  notifier?: NotifierConfig;
}

export const DEFAULT_TIMEOUT_MS = 15_000;
export const DEFAULT_MAX_IN_FLIGHT = 10;

/** Endpoints without settings of their own share one object: with a million endpoints, copies would take a gigabyte. */
const DEFAULT_RETRY = newRetryPolicy({});
const EVERY_EVENT: readonly string[] = ['*'];
const NO_CHANNELS: readonly string[] = [];
const NO_NAMES: readonly string[] = [];
const NO_HEADERS: Readonly<Record<string, string>> = {};

export function resolveRetry(config?: RetryConfig): RetryPolicy {
  return config === undefined ? DEFAULT_RETRY : newRetryPolicy(config);
}

function newRetryPolicy(config: RetryConfig): RetryPolicy {
  const isExponential = config.base !== undefined;
  const rules = {
    jitter: config.jitter ?? (isExponential ? ('full' as const) : ('proportional' as const)),
    maxAgeSeconds: DEFAULT_MAX_AGE_SECONDS,
    permanent: config.permanent ?? DEFAULT_PERMANENT,
    transient: config.transient ?? DEFAULT_TRANSIENT,
  };
  const policy: RetryPolicy = isExponential
    ? {
        ...rules,
        kind: 'exponential',
        base: config.base!,
        factor: config.factor ?? 2,
        max: config.max ?? 86_400,
        attempts: config.attempts ?? 10,
      }
    : { ...rules, kind: 'schedule', schedule: config.schedule ?? retryPresets[config.preset ?? 'default'] };
  return { ...policy, maxAgeSeconds: config.max_age_seconds ?? defaultMaxAge(policy) };
}

/** 72 hours, or as long as the schedule needs with jitter: otherwise its last attempts would never be made. */
function defaultMaxAge(policy: RetryPolicy): number {
  return Math.max(DEFAULT_MAX_AGE_SECONDS, Math.ceil(totalDelaySeconds(policy) * 1.2));
}

export function resolveBreaker(config: BreakerConfig | null | undefined): BreakerSettings | null {
  if (config === null) return null;
  if (config === undefined) return DEFAULT_BREAKER;
  const cooldownSeconds = config.cooldown_seconds ?? DEFAULT_BREAKER.cooldownSeconds;
  return {
    consecutive: config.consecutive ?? DEFAULT_BREAKER.consecutive,
    failureRate: config.failure_rate ?? DEFAULT_BREAKER.failureRate,
    minRequests: config.min_requests ?? DEFAULT_BREAKER.minRequests,
    windowSeconds: config.window_seconds ?? DEFAULT_BREAKER.windowSeconds,
    cooldownSeconds,
    maxCooldownSeconds: Math.max(
      config.max_cooldown_seconds ?? DEFAULT_BREAKER.maxCooldownSeconds,
      cooldownSeconds,
    ),
  };
}

/** An endpoint as it is stored. */
export interface EndpointRecord {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly config: EndpointConfig;
  readonly enabled: boolean;
  readonly disabledReason: DisabledReason | null;
  readonly paused: boolean;
  readonly deleted: boolean;
  /** Null or absent: its lane is in the default region. */
  readonly shard?: number | null;
  /** Null or absent: its lane should be in the default region. */
  readonly wantedShard?: number | null;
  readonly placement?: number;
}

/** What the configuration of an endpoint decides. Endpoints with equal configurations have equal settings. */
export type EndpointSettings = Omit<Endpoint, keyof Omit<EndpointRecord, 'config'> | 'secrets'>;

export function resolveEndpoint(record: EndpointRecord, secrets: readonly EndpointSecret[]): Endpoint {
  return {
    id: record.id,
    tenant: record.tenant,
    url: record.url,
    enabled: record.enabled,
    disabledReason: record.disabledReason,
    paused: record.paused,
    deleted: record.deleted,
    shard: record.shard ?? null,
    wantedShard: record.wantedShard ?? null,
    placement: record.placement ?? 0,
    ...resolveSettings(record.config),
    secrets,
  };
}

export function resolveSettings(config: EndpointConfig): EndpointSettings {
  const rate = config.rate_limit;
  return {
    events: config.events ?? EVERY_EVENT,
    channels: config.channels ?? NO_CHANNELS,
    operator: config.operator ?? false,
    filter: config.filter ?? null,
    apiVersion: config.api_version ?? null,
    payload: config.payload ?? 'full',
    headers: config.headers ?? NO_HEADERS,
    plainHeaders: config.plain_headers ?? NO_NAMES,
    auth: resolveAuth(config.auth),
    certificate: resolveCertificate(config.tls),
    signature: config.signature ?? 'standard',
    retry: resolveRetry(config.retry),
    breaker: resolveBreaker(config.breaker),
    timeoutMs: config.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    maxInFlight: config.ordering === 'fifo' ? 1 : (config.max_in_flight ?? DEFAULT_MAX_IN_FLIGHT),
    isAdaptive: config.adaptive !== 'off',
    rateLimit:
      rate === undefined
        ? null
        : { perSecond: rate.per_second, burst: rate.burst ?? Math.max(1, rate.per_second) },
    region: config.region ?? null,
    ordering: config.ordering ?? 'none',
    fifoOnDead: config.fifo_on_dead ?? 'skip',
    followRedirects: config.follow_redirects ?? 0,
    batch: resolveBatch(config.batch),
    debounce: resolveDebounce(config.debounce),
    notifier: config.notifier ?? null,
  };
}
