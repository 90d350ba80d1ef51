import { signatureHeaders } from '../../deliver/index.ts';
import { DEFAULT_MAX_IN_FLIGHT, DEFAULT_TIMEOUT_MS, resolveEndpoint } from '../../domain/endpoint-config.ts';
import { idPrefixes, publicId, timeOfId } from '../../domain/ids.ts';
import type { RetryPolicy } from '../../domain/retry.ts';
import type { EndpointView } from '../../postgres/queries/endpoints.ts';
import type { Totals } from '../../postgres/queries/stats.ts';
import type { Shown } from '../openapi/describe.ts';
import { showFigures } from '../stats/figures.ts';
import { showAuth, showTls } from './auth-schema.ts';
import { showBatch, showDebounce } from './shaping-schema.ts';
import type { EndpointSchema } from './view-schema.ts';

/** `view` has the headers that the caller may see (`Endpoints.visibleTo`). */
export function showEndpoint(
  view: EndpointView,
  lastDay: Totals,
  publicKey: string | null,
  nowMs: number,
): Shown<typeof EndpointSchema> {
  const { created_at, updated_at, ...settings } = showSettings(view);
  return {
    ...settings,
    public_key: publicKey,
    signing_secrets: showSecrets(view, nowMs),
    health: showHealth(view, lastDay),
    created_at,
    updated_at,
  };
}

/** Which secrets sign now, and in which header. */
function showSecrets(
  { config, secrets }: EndpointView,
  nowMs: number,
): Shown<typeof EndpointSchema>['signing_secrets'] {
  const active = secrets ?? [];
  const headers = signatureHeaders(config.signature ?? 'standard', active, nowMs);
  return active.map(({ createdAt, expiresAt, mainFrom }, index) => ({
    created_at: new Date(createdAt),
    expires_at: expiresAt === null ? null : new Date(expiresAt),
    header: headers[index] ?? null,
    switch_at: mainFrom === null || mainFrom <= nowMs ? null : new Date(mainFrom),
  }));
}

function showHealth(view: EndpointView, lastDay: Totals): Shown<typeof EndpointSchema>['health'] {
  return {
    circuit: view.circuit ?? 'closed',
    opened_at: view.opened_at,
    next_probe_at: view.next_probe_at,
    consecutive_failures: view.consecutive_failures ?? 0,
    ...showLimits(view),
    waiting: view.waiting,
    dead: view.dead,
    count_limit: view.count_limit,
    skipped_while_disabled: view.skipped_while_disabled,
    oldest_waiting_at: view.oldest_waiting === null ? null : new Date(timeOfId(view.oldest_waiting)),
    ...showFigures(lastDay),
  };
}

/** The limits as of now: lower than the configured ones while the endpoint is consistently slow. */
function showLimits({ config, adaptive: record }: EndpointView) {
  const adaptive = config.adaptive === 'off' ? null : record;
  const maxInFlight = config.ordering === 'fifo' ? 1 : (config.max_in_flight ?? DEFAULT_MAX_IN_FLIGHT);
  const timeoutMs = config.timeout_ms ?? DEFAULT_TIMEOUT_MS;
  return {
    in_flight_limit: Math.min(maxInFlight, adaptive?.inFlightLimit ?? maxInFlight),
    effective_timeout_ms: Math.min(timeoutMs, adaptive?.timeoutMs ?? timeoutMs),
    adaptive: adaptive && { reason: adaptive.reason, since: new Date(adaptive.since) },
  };
}

/** An endpoint without what changes by itself. */
export function showSettings(
  view: EndpointView,
): Omit<Shown<typeof EndpointSchema>, 'health' | 'public_key' | 'signing_secrets'> {
  const endpoint = resolveEndpoint({ ...view, disabledReason: view.disabled_reason, deleted: false }, []);
  const { breaker, rateLimit } = endpoint;
  return {
    id: publicId(idPrefixes.endpoint, view.id),
    tenant: view.tenant,
    url: view.url,
    description: view.description,
    events: endpoint.events,
    channels: endpoint.channels,
    operator: endpoint.operator,
    filter: endpoint.filter,
    enabled: view.enabled,
    disabled_reason: view.disabled_reason,
    paused: view.paused,
    api_version: endpoint.apiVersion,
    payload: endpoint.payload,
    headers: view.config.headers ?? {},
    plain_headers: endpoint.plainHeaders,
    auth: showAuth(view.config.auth),
    tls: showTls(view.config.tls),
    signature: endpoint.signature,
    retry: showRetry(endpoint.retry),
    breaker: breaker && {
      consecutive: breaker.consecutive,
      failure_rate: breaker.failureRate,
      min_requests: breaker.minRequests,
      window_seconds: breaker.windowSeconds,
      cooldown_seconds: breaker.cooldownSeconds,
      max_cooldown_seconds: breaker.maxCooldownSeconds,
    },
    timeout_ms: endpoint.timeoutMs,
    max_in_flight: endpoint.maxInFlight,
    adaptive: endpoint.isAdaptive ? ('on' as const) : ('off' as const),
    rate_limit: rateLimit && { per_second: rateLimit.perSecond, burst: rateLimit.burst },
    region: endpoint.region,
    ordering: endpoint.ordering,
    fifo_on_dead: endpoint.fifoOnDead,
    follow_redirects: endpoint.followRedirects,
    challenge: view.config.challenge ?? null,
    batch: showBatch(endpoint.batch),
    debounce: showDebounce(endpoint.debounce),
    metadata: view.metadata,
    created_at: view.created_at,
    updated_at: view.updated_at,
  };
}

function showRetry(retry: RetryPolicy) {
  const rules = {
    jitter: retry.jitter,
    max_age_seconds: retry.maxAgeSeconds,
    permanent: retry.permanent,
    transient: retry.transient,
  };
  if (retry.kind === 'schedule') return { schedule: retry.schedule, ...rules };
  const { base, factor, max, attempts } = retry;
  return { base, factor, max, attempts, ...rules };
}
